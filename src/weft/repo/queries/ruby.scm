(method name: (_) @name) @definition.method
(singleton_method name: (_) @name) @definition.method
(class name: [(constant) @name (scope_resolution name: (constant) @name)]) @definition.class
(module name: [(constant) @name (scope_resolution name: (constant) @name)]) @definition.module
(assignment left: (constant) @name) @definition.constant
(alias name: (identifier) @name) @definition.method
((call
  method: (identifier) @_method
  arguments: (argument_list (simple_symbol) @name)) @definition.method
  (#match? @_method "^attr_(reader|writer|accessor)$"))

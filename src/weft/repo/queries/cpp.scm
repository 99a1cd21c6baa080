(function_definition
  declarator: (function_declarator declarator: (identifier) @name)) @definition.function
(function_definition
  declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @definition.function
(function_definition
  declarator: (pointer_declarator
    declarator: (pointer_declarator
      declarator: (function_declarator declarator: (identifier) @name)))) @definition.function
(declaration
  declarator: (function_declarator declarator: (identifier) @name)) @definition.prototype
(declaration
  declarator: (pointer_declarator
    declarator: (function_declarator declarator: (identifier) @name))) @definition.prototype
(struct_specifier name: (_) @name body: (_)) @definition.struct
(union_specifier name: (type_identifier) @name body: (_)) @definition.struct
(enum_specifier name: (type_identifier) @name body: (_)) @definition.enum
(type_definition declarator: (type_identifier) @name) @definition.type
(preproc_def name: (identifier) @name value: (_)) @definition.macro
(preproc_function_def name: (identifier) @name) @definition.macro
(class_specifier name: (_) @name body: (_)) @definition.class
(namespace_definition name: (_) @name) @definition.module
(alias_declaration name: (type_identifier) @name) @definition.type
(function_definition
  declarator: (function_declarator
    declarator: [(field_identifier) (operator_name) (destructor_name)] @name)) @definition.method
(function_definition
  declarator: (function_declarator
    declarator: (qualified_identifier name: (_) @name))) @definition.method
(function_definition
  declarator: (reference_declarator
    (function_declarator
      declarator: [
        (field_identifier) @name
        (identifier) @name
        (qualified_identifier name: (_) @name)]))) @definition.method
(function_definition
  declarator: (pointer_declarator
    declarator: (function_declarator
      declarator: [
        (field_identifier) @name
        (qualified_identifier name: (_) @name)]))) @definition.method
(field_declaration
  declarator: (function_declarator declarator: (field_identifier) @name)) @definition.prototype
((function_definition
  type: [(class_specifier) (struct_specifier)]
  declarator: (identifier) @name) @definition.class
  (#not-eq? @name "final"))
(concept_definition name: (identifier) @name) @definition.type

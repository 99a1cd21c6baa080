(function_definition name: (name) @name) @definition.function
(method_declaration name: (name) @name) @definition.method
(class_declaration name: (name) @name) @definition.class
(interface_declaration name: (name) @name) @definition.interface
(trait_declaration name: (name) @name) @definition.trait
(enum_declaration name: (name) @name) @definition.enum
(const_declaration (const_element (name) @name)) @definition.constant
(property_declaration
  (property_element name: (variable_name (name) @name))) @definition.property

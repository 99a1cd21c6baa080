(attribute
  (attribute_name) @word
  [(attribute_value) @name (quoted_attribute_value (attribute_value) @name)]
  (#eq? @word "id")) @definition.element

((call
  target: (identifier) @word
  (arguments . (alias) @name)) @definition.module
  (#any-of? @word "defmodule" "defprotocol" "defimpl"))
((call
  target: (identifier) @word
  (arguments . [
    (identifier) @name
    (call target: (identifier) @name)
    (binary_operator left: (call target: (identifier) @name) operator: "when")
    (binary_operator left: (identifier) @name operator: "when")])) @definition.function
  (#any-of? @word "def" "defp" "defmacro" "defmacrop" "defdelegate" "defguard" "defguardp" "defn"))

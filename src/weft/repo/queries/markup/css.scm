(rule_set (selectors (class_selector (class_name) @name))) @definition.rule
(rule_set (selectors (id_selector (id_name) @name))) @definition.rule
(keyframes_statement (keyframes_name) @name) @definition.rule

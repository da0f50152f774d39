{% macro cents(n) %}({{ n }} / 100.0){% endmacro %}

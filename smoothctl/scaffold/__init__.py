"""New packages of plugins, from templates that work as they are."""

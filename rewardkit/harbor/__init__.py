"""Tasks in Harbor's form: read, graded and examined without a container where none is needed."""

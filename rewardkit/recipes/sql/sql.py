"""SQL: the same result as the gold query, on a database that the model has not seen."""

from builtin_rewards.formats import code_fence
from builtin_rewards.sql import sql_result

fenced = code_fence("sql").with_options(name="fenced")
query = (0.95 * sql_result + 0.05 * fenced).named("query")

"""The questions that a reader asks a record, in SQLite's words: see :mod:`rewardkit.record.dialect`.

A completion's total, the weighted sum that the trainer uses, is ``completion.weighted``; ``completion.total`` is the
plain sum, see :mod:`rewardkit.record.schema`.
"""

from __future__ import annotations

COMPLETION = (
    "SELECT completion.*, text.body AS completion_body FROM completion"
    " LEFT JOIN text ON text.id = completion.completion WHERE completion.id IN ({})"
)
OF_BATCHES = (
    "SELECT batch.id, batch.step, batch.split, batch.versions, session.rank FROM batch"
    " JOIN session ON session.id = batch.session WHERE batch.id IN ({})"
)
PROMPTS = (
    "SELECT prompt.id, p.body AS prompt_body, c.body AS columns_body FROM prompt JOIN text p ON p.id = prompt.prompt"
    " JOIN text c ON c.id = prompt.columns WHERE prompt.id IN ({}) ORDER BY prompt.id"
)
PROMPT = (
    "SELECT prompt.id, p.body AS prompt_body, c.body AS columns_body FROM prompt JOIN text p ON p.id = prompt.prompt"
    " JOIN text c ON c.id = prompt.columns WHERE prompt.id > ? ORDER BY prompt.id LIMIT ?"
)
RANKED = (
    "SELECT completion.id FROM completion JOIN batch ON batch.id = completion.batch WHERE batch.split = ?"
    " AND batch.step IS ? AND weighted IS NOT NULL ORDER BY weighted"
)
BEST, WORST = f"{RANKED} DESC, completion.id LIMIT ?", f"{RANKED}, completion.id LIMIT ?"
TEXT = "SELECT completion.id, text.body FROM completion JOIN text ON text.id = completion.completion"
OF_BATCH = "SELECT id, {} FROM completion WHERE batch = :batch AND id > :after ORDER BY id"
FAILED_OF_BATCH = (
    "SELECT said.completion FROM said WHERE said.completion BETWEEN"
    " (SELECT id FROM completion WHERE batch = :batch ORDER BY id LIMIT 1)"
    " AND (SELECT id FROM completion WHERE batch = :batch ORDER BY id DESC LIMIT 1) AND said.completion > :after"
    " AND said.pass = 0 AND said.cause IS NOT NULL"
    " AND said.version IN (SELECT id FROM version WHERE reward = :reward) ORDER BY said.completion"
)
OF_PROMPT = (
    "SELECT completion.id, {}, batch.versions FROM completion CROSS JOIN batch ON batch.id = completion.batch"
    " WHERE completion.prompt = :prompt AND completion.id > :after AND (:step IS NULL OR batch.step = :step)"
    " AND (:split IS NULL OR batch.split = :split) ORDER BY completion.id LIMIT :most"
)
SERIES = (
    "SELECT step, sum(total) / sum(counted) FROM (SELECT batch.step, sum(summary.mean * summary.counted) AS total,"
    " sum(summary.counted) AS counted FROM summary JOIN batch ON batch.id = summary.batch WHERE batch.split = ?"
    " AND batch.step IS NOT NULL AND summary.version IN (SELECT id FROM version WHERE reward = ?)"
    " GROUP BY batch.step, summary.version HAVING sum(summary.scored) > 0 AND sum(summary.counted) > 0) AS parts"
    " GROUP BY step ORDER BY step"
)
OLD_SESSIONS = "SELECT id FROM session WHERE NOT instr(about, :mark)"
DEFAULTS = (
    "SELECT 1 FROM summary JOIN batch ON batch.id = summary.batch JOIN version ON version.id = summary.version"
    " WHERE batch.split = ? AND version.reward = ? AND summary.failed > 0 AND summary.counted > 0"
    " AND batch.session IN ({}) LIMIT 1"
)
BATCH_SUMS = (
    "SELECT completion.batch, count(*), count(weighted), avg(weighted),"
    " sum((weighted - origin) * (weighted - origin)), avg(weighted - origin), min(weighted), max(weighted),"
    " count(total), avg(total), count(tokens), avg(tokens), min(tokens), max(tokens), count(truncated), avg(truncated)"
    " FROM completion INDEXED BY completion_batch JOIN batch ON batch.id = completion.batch"
    " JOIN (SELECT completion.batch AS number, min(weighted) AS origin FROM completion INDEXED BY completion_batch"
    "  WHERE completion.batch BETWEEN :first AND :last GROUP BY completion.batch) AS least"
    " ON least.number = completion.batch"
    " WHERE completion.batch BETWEEN :first AND :last AND batch.split = :split"
    " GROUP BY completion.batch ORDER BY completion.batch"
)
CALLS = (
    "SELECT batch.step, version.reward, batch.versions, batch.weights, summary.version, summary.scored,"
    " summary.skipped, summary.failed, summary.causes FROM batch JOIN summary ON summary.batch = batch.id"
    " JOIN version ON version.id = summary.version WHERE batch.split = ? AND batch.step IN ({})"
    " ORDER BY batch.step, version.id"
)
FILE_CALLS = CALLS.replace("IN ({})", "IS NULL")
FAILING_STEPS = (
    "SELECT DISTINCT batch.step FROM batch JOIN summary ON summary.batch = batch.id"
    " WHERE batch.split = ? AND summary.failed > 0 AND batch.step BETWEEN ? AND ?"
)
TOTAL_SERIES = (
    "SELECT batch.step, avg(weighted) FROM batch CROSS JOIN completion ON completion.batch = batch.id"
    " WHERE batch.split = ? AND batch.step IN ({}) AND weighted IS NOT NULL GROUP BY batch.step ORDER BY batch.step"
)
FILE_TOTAL = (
    "SELECT avg(weighted) FROM batch CROSS JOIN completion ON completion.batch = batch.id"
    " WHERE batch.split = ? AND batch.step IS NULL"
)
WITH_TOTAL = (
    "SELECT completion.id FROM completion CROSS JOIN batch ON batch.id = completion.batch"
    " WHERE completion.id > :after AND (:low IS NULL OR weighted >= :low) AND (:high IS NULL OR weighted <= :high)"
    " AND weighted IS NOT NULL AND (:split IS NULL OR batch.split = :split)"
    " ORDER BY completion.id LIMIT :most"
)
BATCH_WEIGHTS = (
    "SELECT batch.id, batch.versions, batch.weights FROM batch WHERE batch.id BETWEEN ? AND ? AND batch.split = ?"
)
BATCHES = (
    "SELECT batch.id, batch.versions FROM batch"
    " WHERE batch.id >= :first AND (:step IS NULL OR step = :step) AND (:split IS NULL OR split = :split) AND"
    " (:reward IS NULL OR EXISTS (SELECT 1 FROM summary JOIN version ON version.id = summary.version"
    "  WHERE summary.batch = batch.id AND version.reward = :reward AND (:low IS NULL OR summary.max >= :low)"
    "  AND (:high IS NULL OR summary.min <= :high) AND (:status IS NULL OR CASE :status WHEN 'failed' THEN"
    "  summary.failed WHEN 'skipped' THEN summary.skipped ELSE summary.scored END > 0)))"
    " ORDER BY batch.id LIMIT :most"
)
PROMPT_SUMS = (
    "SELECT prompt, CAST(epoch AS INTEGER) AS passed, count(*), count(weighted), max(weighted), sum(weighted)"
    " FROM completion WHERE id > ? AND id <= ? GROUP BY prompt, passed"
)
OF_QUESTION = "SELECT id FROM prompt WHERE prompt = (SELECT prompt FROM prompt WHERE id = ?)"
MOMENTS = (
    "SELECT completion.id, completion.epoch, batch.split FROM completion"
    " CROSS JOIN batch ON batch.id = completion.batch WHERE completion.prompt = ? ORDER BY completion.id"
)
MOMENTS_OF_QUESTION = MOMENTS.replace("completion.prompt = ?", f"completion.prompt IN ({OF_QUESTION})")
STARTS = "SELECT batch, min(id) AS first FROM completion GROUP BY batch ORDER BY first"
FAILED = (
    "SELECT version.reward, said.cause, count(*) AS calls, min(said.completion), max(said.completion) FROM said"
    " JOIN version ON version.id = said.version JOIN completion ON completion.id = said.completion"
    " JOIN batch ON batch.id = completion.batch WHERE said.pass = 0 AND said.cause IS NOT NULL AND batch.split = ?"
    " GROUP BY version.reward, said.cause ORDER BY calls DESC, version.reward, said.cause"
)
PROMPT_EPOCHS = (
    "SELECT prompt, CAST(completion.epoch AS INTEGER) AS passed, count(*), avg(weighted), max(weighted) FROM completion"
    " JOIN batch ON batch.id = completion.batch WHERE batch.split = ? GROUP BY prompt, passed"
    " ORDER BY prompt, passed NULLS FIRST"
)
CALL_METRICS = "SELECT completion, metrics FROM said WHERE version = ? AND pass = ? AND metrics IS NOT NULL"
MEASURED_CALLS = (
    "SELECT version, said.completion, metrics, unanswered FROM said JOIN completion ON completion.id = said.completion"
    " JOIN batch ON batch.id = completion.batch WHERE batch.split = ? AND pass = 0 AND metrics IS NOT NULL"
    " AND said.completion > ? AND said.completion <= ?"
)
METRICS_OF_REWARD = (
    "SELECT said.completion, metrics FROM said JOIN version ON version.id = said.version"
    " WHERE version.reward = ? AND pass = 0 AND metrics IS NOT NULL AND said.completion > ? AND said.completion <= ?"
)
CACHED = (
    "SELECT completion.id, completion.status, batch.versions FROM completion"
    " JOIN batch ON batch.id = completion.batch WHERE completion.status <> lower(completion.status)"
)
RESCORED = (
    "SELECT rescored.*, version.digits FROM rescored JOIN pass ON pass.id = rescored.pass"
    " JOIN version ON version.id = pass.version WHERE rescored.pass = ?"
)
SAYS = "SELECT said.*, trace.body AS trace_body, log.body AS log_body"
OF_SAID = " FROM said LEFT JOIN text trace ON trace.id = said.traceback LEFT JOIN text log ON log.id = said.logs"
SAID = f"{SAYS}{OF_SAID}"
LOGS = (
    f"{SAYS}, completion.status AS letters, scores, seconds, completion.epoch, batch.step, batch.split,"
    f" batch.versions, session.rank{OF_SAID} JOIN version ON version.id = said.version"
    " JOIN completion ON completion.id = said.completion"
    " JOIN batch ON batch.id = completion.batch JOIN session ON session.id = batch.session"
    " WHERE said.pass = 0 AND said.completion > :after AND (:reward IS NULL OR version.reward = :reward)"
    " AND (:step IS NULL OR batch.step = :step) AND (:split IS NULL OR batch.split = :split)"
    " ORDER BY said.completion, said.version LIMIT :most"
)

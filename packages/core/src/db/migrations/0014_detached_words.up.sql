-- Words for runs that no worker holds because their target passed the work on, and for attempts whose deadline passed.
-- Why apart from 0015: Postgres does not let a transaction use a word that it has added itself.
-- Locks: none that a reader or writer waits for. Old workers and servers go on, because nothing uses the words yet.

alter type run_state add value if not exists 'detached' after 'running';
alter type attempt_outcome add value if not exists 'timed_out';

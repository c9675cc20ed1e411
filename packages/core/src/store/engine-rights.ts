import type pg from 'pg'

import { JOBS_SCHEMA } from './jobs-schema.ts'

/*
 * After each migration of the engine, for it may have made new tables. It holds its tables by row-level security without any
 * policy, so that nobody but their owner reads them: workers get one. The API gets nothing here.
 */
const RIGHTS = `
  grant usage on schema ${JOBS_SCHEMA} to carillon_worker;
  grant select, insert, update, delete on all tables in schema ${JOBS_SCHEMA} to carillon_worker;
  grant usage, select on all sequences in schema ${JOBS_SCHEMA} to carillon_worker;
  grant execute on all functions in schema ${JOBS_SCHEMA} to carillon_worker;
  do $$
  declare
    walled name;
  begin
    for walled in
      select relname
      from pg_catalog.pg_class
      where relnamespace = '${JOBS_SCHEMA}'::regnamespace and relkind in ('r', 'p') and relrowsecurity
        and not exists (select from pg_catalog.pg_policy where polrelid = pg_class.oid and polname = 'pipeline')
    loop
      execute format(
        'create policy pipeline on ${JOBS_SCHEMA}.%I to carillon_worker using (true) with check (true)', walled
      );
    end loop;
  end
  $$`

/** Lets workers use the engine. */
export async function openEngine(client: pg.ClientBase): Promise<void> {
  await client.query(RIGHTS)
}

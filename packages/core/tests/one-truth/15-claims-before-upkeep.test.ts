import { expect, test } from 'vitest'

import { Worker } from '../../src/worker.ts'
import { createDatabase } from '../database.ts'
import { ScriptedTarget } from '../scripted-target.ts'

const OLD_ENTRIES = 25_000

test('a worker takes its lease before upkeep deletes anything of the event log', async () => {
  await using database = await createDatabase()
  await database.pool.query(
    `insert into carillon.feed_entries (tenant_id, project_id, kind, schedule_ids, changes, noted_at)
    select 'acme', 'web', 'schedule', array[gen_random_uuid()], array['created'], now() - interval '1 day'
    from generate_series(1, $1::int)`,
    [OLD_ENTRIES],
  )
  // The number of entries when the worker takes its lease, which it needs before it claims anything.
  await database.pool.query('create table public.left_at_lease as select 0 as entries limit 0')
  await database.pool.query(`
    create function public.note_left() returns trigger language plpgsql security definer as $$
    begin insert into public.left_at_lease select count(*) from carillon.feed_entries; return null; end $$`)
  await database.pool.query(
    'create trigger note_left after insert on carillon.workers for each row execute function public.note_left()',
  )

  await using worker = new Worker({ databaseUrl: database.url, targets: [new ScriptedTarget()] })
  await worker.start()

  const { rows } = await database.pool.query<{ entries: number }>('select entries from public.left_at_lease limit 1')
  expect(OLD_ENTRIES - (rows[0]?.entries ?? Number.NaN)).toBe(0)
})

import { expect, test } from 'vitest'

import { migrate } from '../../src/db/migrate.ts'
import { Projects } from '../../src/maintenance/purge.ts'
import { CALLER, Pipeline } from '../pipeline.ts'
import { ACCOUNTS, migrationsFolder } from './migrations-folder.ts'

/** Lines refer to accounts, so they must be deleted first. */
const LINES = `
  create table billing_lines (
    tenant_id text collate "C" not null, project_id text collate "C" not null, id uuid primary key,
    account_id uuid not null, foreign key (tenant_id, project_id, account_id) references billing_accounts
  );
  select enable_row_security('billing_lines');
  do $$ begin
    execute format('grant select, insert, delete on billing_lines to %I', current_schema() || '_api');
  end $$;`
const FILL = `
  with accounts as (
    insert into carillon.billing_accounts
    select tenant_id, project_id, gen_random_uuid(), 0
    from (values ('acme', 'web'), ('acme', 'shop'), ('globex', 'web')) as projects(tenant_id, project_id)
    returning *
  )
  insert into carillon.billing_lines
  select tenant_id, project_id, gen_random_uuid(), id from accounts cross join generate_series(1, 6000)`

async function billedPipeline(): Promise<Pipeline> {
  const pipeline = await Pipeline.at('2026-03-02T09:00:00Z')
  const migrations = migrationsFolder({ '0001_accounts': [ACCOUNTS, ''], '0002_lines': [LINES, ''] })
  await migrate(pipeline.database.pool, { modules: [{ name: 'billing', migrations }] })
  await pipeline.database.pool.query(FILL)
  return pipeline
}

async function projectsWithRows({ database }: Pipeline): Promise<string[]> {
  const { rows } = await database.pool.query<{ project: string }>(`
    select distinct tenant_id || '/' || project_id as project from carillon.billing_lines
    union select tenant_id || '/' || project_id from carillon.billing_accounts order by project`)
  return rows.map(({ project }) => project)
}

test('the preview of a purge counts the rows of a module in the project, and in no other', async () => {
  await using pipeline = await billedPipeline()

  const counts = await new Projects(pipeline).previewPurge(CALLER)

  expect(counts.moduleRows).toBe(6001)
})

test('a purge removes the rows of a module in portions, those that refer to others first, and leaves other projects alone', async () => {
  await using pipeline = await billedPipeline()

  const counts = await new Projects(pipeline).purge(CALLER, { name: CALLER.projectId })

  expect(counts.moduleRows).toBe(6001)
  expect(await projectsWithRows(pipeline)).toEqual(['acme/shop', 'globex/web'])
})

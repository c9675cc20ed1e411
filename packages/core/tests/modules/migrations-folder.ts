import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'

import { onTestFinished } from 'vitest'

/** A table of the module `billing` behind all walls. */
export const ACCOUNTS = `
  create table billing_accounts (
    tenant_id text collate "C" not null, project_id text collate "C" not null, id uuid not null, balance integer not null,
    primary key (tenant_id, project_id, id)
  );
  select enable_row_security('billing_accounts');
  do $$ begin
    execute format('grant select, insert, update, delete on billing_accounts to %I, %I', current_schema() || '_api', current_schema() || '_worker');
  end $$;`

/** Writes the migrations of a module into a folder of the test. The key is the number and name, the values are the scripts up and down. */
export function migrationsFolder(scripts: Readonly<Record<string, readonly [up: string, down: string]>>): URL {
  const folder = mkdtempSync(join(tmpdir(), 'carillon-module-'))
  onTestFinished(() => rmSync(folder, { recursive: true }))
  for (const [name, [up, down]] of Object.entries(scripts)) {
    writeFileSync(join(folder, `${name}.up.sql`), up)
    writeFileSync(join(folder, `${name}.down.sql`), down)
  }
  return pathToFileURL(`${folder}/`)
}

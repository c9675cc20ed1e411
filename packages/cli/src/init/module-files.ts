interface ModuleNames {
  /** `[a-z][a-z0-9_]{0,30}`: the name of the module and of its kind. */
  readonly name: string
  /** The version of Carillon that the module is made for. */
  readonly version: string
}

/** The libraries that the module and its test import, besides Carillon's own packages. */
const MODULE_LIBRARIES = { zod: '4.6.7' } as const

/** The files of a new module, by name. `examples/own-module` holds them for the name `greeting`, and its test runs them. */
export function moduleFiles({ name, version }: ModuleNames): Readonly<Record<string, string>> {
  return {
    'package.json': packageFile(name, version),
    [`${name}.ts`]: moduleFile(name),
    [`${name}.test.ts`]: testFile(name),
    'README.md': readmeFile(name),
  }
}

function packageFile(name: string, version: string): string {
  const carillon = Object.fromEntries(
    ['@carillon/api', '@carillon/core', '@carillon/server', 'carillon'].map((each) => [each, version]),
  )
  const manifest = {
    name: `carillon-${name.replaceAll('_', '-')}`,
    version: '0.1.0',
    private: true,
    type: 'module',
    engines: { node: '>=24' },
    scripts: { test: 'node --test', up: `CARILLON_MODULES=./${name}.ts carillon up` },
    dependencies: { ...carillon, ...MODULE_LIBRARIES },
  }
  return `${JSON.stringify(manifest, null, 2)}\n`
}

function moduleFile(name: string): string {
  return `import { MODULE_PORT, type ModuleManifest, type Target } from '@carillon/core'
import { z } from 'zod'

/** The \`target\` of a schedule, as a caller writes it. Carillon stores what the schema returns. */
const spec = z.strictObject({
  kind: z.literal('${name}'),
  to: z.string({ error: 'expected a name' }).min(1, { error: 'expected a name' }),
})

const target: Target<z.infer<typeof spec>> = {
  kind: '${name}',
  title: 'An example of a kind',
  example: { kind: '${name}', to: 'Ada' },
  scopePattern: '${name}:dispatch:<to>',
  schema: spec,
  // What the policy of a schedule falls back to.
  policy: { retry: { maxAttempts: 3, baseSeconds: 5, capSeconds: 60 } },
  // What a grant must permit.
  requiredScope: ({ to }) => \`${name}:dispatch:\${to}\`,
  timeoutMs: () => 10_000,
  // One attempt. The idempotency key is the same on every attempt of a run, so that the called side can tell a repetition.
  dispatch: async ({ spec: { to }, idempotencyKey }) => ({
    kind: 'succeeded',
    result: { said: \`hello \${to}\`, key: idempotencyKey },
  }),
}

/** What Carillon knows of the module before it calls \`load\`. */
export const module: ModuleManifest = {
  port: MODULE_PORT,
  name: '${name}',
  version: '0.1.0',
  kinds: ['${name}'],
  load: async () => ({ create: () => ({ targets: [target] }) }),
}
`
}

function testFile(name: string): string {
  return `import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'

import { createClient, type Client, type Run } from '@carillon/api'
import { readSettings, startEverything, type RunningCarillon } from '@carillon/server'

const CARILLON_ADMIN_KEY = 'the-admin-key-of-this-test'
const cadence = { kind: 'cron', expression: '@yearly', timezone: 'UTC' } as const

let dataDir: string
let carillon: RunningCarillon
let client: Client

// The whole of Carillon with the module, on a Postgres of its own.
before(async () => {
  dataDir = await mkdtemp(join(tmpdir(), '${name}-'))
  const env = { CARILLON_ADMIN_KEY, CARILLON_DATA_DIR: dataDir, CARILLON_LOG_LEVEL: 'silent', CARILLON_PORT: '0' }
  const settings = readSettings({ ...env, CARILLON_MODULES: './${name}.ts' }, { folder: import.meta.dirname })
  carillon = await startEverything(settings)
  client = createClient(carillon.url, CARILLON_ADMIN_KEY)
})
after(async () => {
  await carillon.stop()
  await rm(dataDir, { recursive: true })
})

/** Runs a schedule now, and returns its run once it is over. Follows the events first, so that it misses none. */
async function runNow(scheduleId: string): Promise<Run> {
  const opened = Promise.withResolvers<unknown>()
  const over = (async () => {
    for await (const { event, data } of client.events({ onPosition: opened.resolve })) {
      if (event !== 'run' || data.run.scheduleId !== scheduleId) continue
      if (['succeeded', 'failed', 'cancelled'].includes(data.run.state)) return data.run
    }
    throw new Error('expected the end of the run, got the end of the events')
  })()
  await opened.promise
  await client.schedules.run(scheduleId)
  return over
}

test('a schedule of the kind ${name} runs, and the ledger keeps its result', async () => {
  const { id } = await client.schedules.create({ name: 'Hello', cadence, target: { kind: '${name}', to: 'Ada' } })

  const { id: runId, state } = await runNow(id)

  assert.equal(state, 'succeeded')
  const { attempts } = await client.runs.get(runId)
  assert.partialDeepStrictEqual(attempts, [{ outcome: 'succeeded', result: { said: 'hello Ada' } }])
})

test('a target without a name is refused with the field at fault', async () => {
  const refused = client.schedules.create({ name: 'Hello', cadence, target: { kind: '${name}' } })

  await assert.rejects(refused, { code: 'invalid_input', message: /target\\.to: expected a name/ })
})

test('the kind is listed with its schema and its example', async () => {
  const { items } = await client.targetKinds.list()

  assert.deepEqual(items.find(({ kind }) => kind === '${name}')?.example, { kind: '${name}', to: 'Ada' })
})
`
}

function readmeFile(name: string): string {
  return `# ${name}

A module of Carillon with the target kind \`${name}\`.

\`\`\`sh
npm install
npm test
CARILLON_MODULES=./${name}.ts npx carillon up
\`\`\`

In another terminal, in the same folder:

\`\`\`sh
npx carillon target-kinds show ${name}
npx carillon schedules create Hello --in 5s --target-json '{"kind":"${name}","to":"Ada"}' --wait
\`\`\`

- \`${name}.ts\` is the module: the schema of the target, its default policy, and what one attempt does. The types in
  \`@carillon/core\` say what else a module may bring: hooks in the transactions of its runs, tables of its own, operations over HTTP,
  services, commands and checks.
- \`${name}.test.ts\` starts all of Carillon with the module, on a Postgres of its own, and runs a schedule.

Servers and workers in production take the same variable: \`CARILLON_MODULES=./${name}.ts carillon worker --targets ${name}\`.
`
}

import type { TargetKind } from '@carillon/api'
import type { Command } from 'commander'

import { fieldLines, tableLines } from '../output/table.ts'
import type { Screen } from '../output/terminal.ts'
import { usageError } from '../process/cli-error.ts'
import { connect } from '../service/connect.ts'
import { examples, type Define } from './define.ts'

export function addTargetKindsCommand(program: Command, define: Define): void {
  const kinds = program.command('target-kinds').description('show what schedules can call')
  addList(kinds, define)
  addShow(kinds, define)
}

function addList(kinds: Command, define: Define): void {
  const list = kinds.command('list').description('list the kinds of targets, those of modules included')
  examples(list, 'carillon target-kinds list')
  define(list, async ({ cli, show }) => {
    const page = await connect(cli).targetKinds.list()
    show(page, () =>
      tableLines(
        cli.terminal,
        [
          { title: 'KIND', of: ({ kind }) => kind },
          { title: 'TITLE', of: ({ title }) => title, shrinksTo: 12 },
          { title: 'SCOPE', of: ({ scopePattern }) => scopePattern ?? '-', shrinksTo: 12 },
          { title: 'ATTEMPTS', of: ({ policies }) => String(policies[0]?.policy.retry.maxAttempts ?? '-') },
          { title: 'EXAMPLE', of: ({ example }) => (example === null ? '-' : JSON.stringify(example)), shrinksTo: 20 },
        ],
        page.items,
      ),
    )
  })
}

function addShow(kinds: Command, define: Define): void {
  const show = kinds
    .command('show')
    .description('show a kind of target: its fields, its default policy and an example')
    .argument('<kind>', 'kind, such as http')
  examples(show, 'carillon target-kinds show http', 'carillon target-kinds show http --json')
  define(show, async ({ cli, args, show: print }) => {
    const { items } = await connect(cli).targetKinds.list()
    const found = items.find(({ kind }) => kind === args[0])
    if (found === undefined) {
      throw usageError(`expected one of ${items.map(({ kind }) => kind).join(', ')}, got ${args[0] ?? 'none'}`)
    }
    print(found, () => kindLines(cli.terminal, found))
  })
}

function kindLines(screen: Screen, kind: TargetKind): string[] {
  const { schema, policies, example } = kind
  const fields = fieldsOf(schema)
  return [
    ...fieldLines(screen, [
      ['Kind', kind.kind],
      ['Title', kind.title],
      ['Scope', kind.scopePattern ?? ''],
      ['Hooks', kind.hasHooks ? 'yes: only workers that serve this kind handle its runs' : ''],
      ...policies.map(({ cadenceKinds, policy }): [string, string] => [
        policies.length === 1 ? 'Policy' : `Policy (${cadenceKinds.join(', ')})`,
        `overlap ${policy.overlap}, missed ${policy.missed}, attempts ${policy.retry.maxAttempts}`,
      ]),
    ]),
    ...(fields.length === 0
      ? []
      : [
          '',
          ...tableLines(
            screen,
            [
              { title: 'FIELD', of: ({ name }) => name },
              { title: 'TYPE', of: ({ type }) => type },
              { title: 'REQUIRED', of: ({ isRequired }) => (isRequired ? 'yes' : '') },
              { title: '', of: ({ description }) => description, shrinksTo: 20 },
            ],
            fields,
          ),
        ]),
    ...(example === null
      ? []
      : ['', `Example: --target-json '${JSON.stringify(example).replaceAll("'", String.raw`'\''`)}'`]),
  ]
}

interface Field {
  readonly name: string
  readonly type: string
  readonly isRequired: boolean
  readonly description: string
}

/** The fields of a JSON Schema. What is not as JSON Schema says is left out: a module of any origin wrote it. */
function fieldsOf({ properties, required }: TargetKind['schema']): Field[] {
  if (typeof properties !== 'object' || properties === null) return []
  const names: unknown[] = Array.isArray(required) ? required : []
  return Object.entries(properties as Readonly<Record<string, unknown>>).map(([name, property]) => {
    const { type, const: only, enum: choices, description } = (property ?? {}) as Readonly<Record<string, unknown>>
    const shown = only === undefined ? (choices ?? type) : JSON.stringify(only)
    return {
      name,
      type: Array.isArray(shown) ? shown.join(', ') : typeof shown === 'string' ? shown : 'any',
      isRequired: names.includes(name),
      description: typeof description === 'string' ? description : '',
    }
  })
}

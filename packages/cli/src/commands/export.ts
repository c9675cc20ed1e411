import type { Schedule } from '@carillon/api'
import { Option, type Command } from 'commander'

import { examples, type Define } from '../define.ts'
import { listAllSchedules, listNamedGrantIds } from '../list-all.ts'
import { canonicalJson, toPortable, type PortableSchedule } from '../portable-schedule.ts'

interface ExportOptions {
  readonly format: 'json' | 'yaml'
  readonly withGrants?: boolean
}

const NO_GRANTS: ReadonlySet<string> = new Set()

export function addExport(program: Command, define: Define): void {
  const command = program
    .command('export')
    .description('write the schedules of the project as a file that import reads')
    .addOption(new Option('--format <format>', 'of the file').choices(['json', 'yaml']).default('json'))
    .option('--with-grants', 'keep the ids of grants that were given by name, which only this project knows')
  examples(command, 'carillon export > schedules.json', 'carillon export --format yaml > schedules.yaml')
  define<ExportOptions>(command, async ({ cli, options, note }) => {
    const all = await listAllSchedules(cli)
    const open = all.filter(({ state }) => state !== 'completed')
    // A grant of a schedule's own is made anew with every schedule.
    const named = await listNamedGrantIds(cli)
    const withGrants = options.withGrants === true
    // In an order that does not depend on when they were made, so that two exports of the same can be compared.
    const schedules = open
      .map((schedule) => exported(schedule, withGrants ? named : NO_GRANTS))
      .toSorted((a, b) => (canonicalJson([a.name, a]) < canonicalJson([b.name, b]) ? -1 : 1))
    cli.terminal.writeOut(await formatted({ schedules }, options.format))
    const { length: granted } = open.filter(({ grantId }) => named.has(grantId))
    if (all.length > open.length) note(`left out: ${all.length - open.length} that are completed and come due no more`)
    if (granted > 0 && !withGrants) {
      note(`left out: the grants that ${granted} of them were given; give them again after the import`)
    }
  })
}

function exported(schedule: Schedule, kept: ReadonlySet<string>): PortableSchedule {
  const { grantId } = schedule
  return { ...toPortable(schedule), ...(kept.has(grantId) ? { grantId } : {}) }
}

async function formatted(content: object, format: ExportOptions['format']): Promise<string> {
  if (format === 'json') return `${JSON.stringify(content, null, 2)}\n`
  const { stringify } = await import('yaml')
  // Anchors would be read back, but by people they are not.
  return stringify(content, { aliasDuplicateObjects: false })
}

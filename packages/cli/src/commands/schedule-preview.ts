import { Option, type Command } from 'commander'

import { addCadenceOptions, requireCadence, type CadenceOptions } from '../cadence-options.ts'
import { connect } from '../connection.ts'
import { examples, type Define } from '../define.ts'
import { moment, wholeNumber } from '../option-values.ts'
import { previewLines } from '../output/preview-view.ts'

interface PreviewOptions extends CadenceOptions {
  readonly from?: string
  readonly count?: number
}

export function addPreview(schedules: Command, define: Define): void {
  const preview = addCadenceOptions(
    schedules.command('preview').description('show when a cadence comes due, without making anything'),
  )
    .addOption(new Option('--from <instant>', 'slots after it (now)').argParser(moment))
    .addOption(new Option('--count <count>', 'so many slots, 1 to 100 (5)').argParser(wholeNumber))
  examples(
    preview,
    'carillon schedules preview --cron "30 2 * * *" --timezone America/New_York',
    'carillon schedules preview --rrule "FREQ=MONTHLY;BYDAY=1MO" --start 2026-01-05T09:00:00 --count 12',
  )
  define<PreviewOptions>(preview, async ({ cli, options, show }) => {
    const cadence = requireCadence(options, cli.clock.now())
    const { from, count } = options
    const answer = await connect(cli).cadence.preview({
      cadence,
      ...(from === undefined ? {} : { from }),
      ...(count === undefined ? {} : { count }),
    })
    show(answer, () => previewLines(cli.terminal, answer, cadence.timezone ?? 'UTC', cli.clock.now()))
  })
}

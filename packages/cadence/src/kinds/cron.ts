import { cronDays, cronTimesOfDay } from '../cron/cron-days.ts'
import { parseCron } from '../cron/cron-parser.ts'
import { formatCron } from '../cron/cron-text.ts'
import { DailyRule } from '../daily-rule.ts'
import { describeCron } from '../english/cron-phrase.ts'
import { localDraft } from '../local-draft.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { readRecurrence, recurrenceSpec } from '../recurrence-input.ts'
import { densityOf, spacingOnCircle } from '../spacing.ts'
import { DAY_MS } from '../wall.ts'
import { dstPolicy } from '../zoned-input.ts'

export function readCron(context: ParseContext): CadenceDraft | undefined {
  const text = context.reader.requiredText('expression', 'a cron expression such as 0 9 * * 1-5')
  const expression = text === undefined ? undefined : parseCron(text, 'expression', context.problems)
  const { recurrence } = readRecurrence(context)
  if (expression === undefined || recurrence === undefined) return undefined
  const { zone, bounds } = recurrence
  const timesOfDay = cronTimesOfDay(expression)
  const rule = new DailyRule(cronDays(expression), timesOfDay)
  const dst = dstPolicy(recurrence.dst, densityOf(timesOfDay))
  return {
    spec: { kind: 'cron', expression: formatCron(expression), ...recurrenceSpec(recurrence) },
    ...localDraft(rule, dst, zone, bounds),
    closest: spacingOnCircle(timesOfDay, DAY_MS).min,
    phrase: () => describeCron(expression),
  }
}

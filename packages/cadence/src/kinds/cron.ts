import { cronDays, cronTimesOfDay } from '../cron/cron-days.ts'
import { formatCron } from '../cron/cron-expression.ts'
import { parseCron } from '../cron/cron-parser.ts'
import { describeCron } from '../english/cron-phrase.ts'
import { createLocalDraft } from '../input/cadence-draft.ts'
import type { CadenceDraft } from '../input/cadence-draft.ts'
import type { ParseContext } from '../input/parse-context.ts'
import { readRecurrence, recurrenceSpec } from '../input/recurrence-input.ts'
import { DailyRule } from '../rules/day-set.ts'
import { densityOf, spacingOnCircle } from '../rules/spacing.ts'
import { resolveDst } from '../time/dst-policy.ts'
import { DAY_MS } from '../time/wall-time.ts'

export function parseCronCadence(context: ParseContext): CadenceDraft | undefined {
  const text = context.reader.requiredText('expression', 'a cron expression such as 0 9 * * 1-5')
  const expression = text === undefined ? undefined : parseCron(text, 'expression', context.problems)
  const { recurrence } = readRecurrence(context)
  if (expression === undefined || recurrence === undefined) return undefined
  const { zone, bounds } = recurrence
  const timesOfDay = cronTimesOfDay(expression)
  const rule = new DailyRule(cronDays(expression), timesOfDay)
  const dst = resolveDst(recurrence.dst, densityOf(timesOfDay))
  return {
    spec: { kind: 'cron', expression: formatCron(expression), ...recurrenceSpec(recurrence) },
    ...createLocalDraft(rule, dst, zone, bounds),
    closestMs: spacingOnCircle(timesOfDay, DAY_MS).min,
    listedTimes: timesOfDay.length,
    phrase: () => describeCron(expression),
  }
}

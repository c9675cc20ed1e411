import { readBounds } from '../bounds-input.ts'
import { cronDays, cronTimesOfDay } from '../cron/cron-days.ts'
import { describeCron } from '../cron/cron-description.ts'
import { parseCron } from '../cron/cron-parser.ts'
import { DailyRule } from '../daily-rule.ts'
import type { CadenceDraft, ParseContext } from '../parse-context.ts'
import { SlotWalk } from '../slot-walk.ts'
import { closestOnCircle, closestOnLine } from '../spacing.ts'
import { DAY_MS, HOUR_MS } from '../wall.ts'
import { dstPolicy, readDst, readZone } from '../zoned-input.ts'

export function readCron(context: ParseContext): CadenceDraft | undefined {
  const { reader, problems } = context
  const text = reader.requiredText('expression', 'a cron expression such as 0 9 * * 1-5')
  const expression = text === undefined ? undefined : parseCron(text, 'expression', problems)
  const dstSpec = readDst(context)
  const zone = readZone(context)
  const bounds = zone === undefined ? undefined : readBounds(context, zone)
  if (expression === undefined || zone === undefined || bounds === undefined) return undefined
  const timesOfDay = cronTimesOfDay(expression)
  const rule = new DailyRule(cronDays(expression), timesOfDay)
  const dst = dstPolicy(dstSpec, closestOnLine(timesOfDay) <= HOUR_MS)
  return {
    spec: {
      kind: 'cron',
      expression: expression.text,
      timezone: zone.name,
      ...bounds.spec,
      ...(dstSpec === undefined ? {} : { dst: dstSpec }),
    },
    zone,
    dst,
    source: new SlotWalk(rule, zone, dst),
    wallRule: rule,
    from: bounds.from,
    to: bounds.to,
    maxRuns: bounds.maxRuns,
    closest: closestOnCircle(timesOfDay, DAY_MS),
    added: [],
    phrase: () => describeCron(expression.text),
  }
}

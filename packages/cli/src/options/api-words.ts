import { operations } from '@carillon/api'

const { cadence, target } = operations.getSchedule.success.schema.shape
const [httpTarget] = target.options
const [onceCadence] = cadence.options
const daylightSaving = onceCadence.shape.dst.unwrap().shape

/** What happens to a local time that daylight saving skips, and to one that occurs twice. */
export const GAP_EFFECTS = daylightSaving.gap.unwrap().options
export const FOLD_EFFECTS = daylightSaving.fold.unwrap().options

/** The kinds of authentication that name a secret. */
export const SECRET_AUTH_KINDS = httpTarget.shape.auth
  .unwrap()
  .options.flatMap(({ shape }) => ('secretRef' in shape ? [shape.kind.value] : []))

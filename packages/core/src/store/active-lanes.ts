import { sql, type RawBuilder } from 'kysely'

/**
 * The lanes that have an active schedule, as a common table expression `lanes(lane)` for `with recursive`. Steps from lane to lane
 * through `schedules_agenda_idx`, so it reads one entry per lane however many schedules there are.
 */
export function activeLanes(): RawBuilder<unknown> {
  return sql`lanes(lane) as (
      select min(schedules.lane) from carillon.schedules where schedules.state = 'active'
      union all
      select (
        select min(schedules.lane) from carillon.schedules where schedules.state = 'active' and schedules.lane > lanes.lane
      )
      from lanes
      where lanes.lane is not null
    )`
}

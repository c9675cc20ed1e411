import { beginSlots, inTransaction, settleSlots, type Pool, type Slot } from './job-per-slot.ts'

const BATCH = 500
const LANES_PER_KIND = 64

/**
 * Drains the agenda with the same bare statements as the job per slot: what the two designs cost by themselves, without
 * policies, revisions and fences. While one batch is settled the next one begins.
 * @returns seconds
 */
export async function drainAgendaBare(pool: Pool, kind: string): Promise<number> {
  const lanes = Array.from({ length: LANES_PER_KIND }, (_, lane) => `${kind}.${lane}`)
  const startedAt = performance.now()
  let settling: Promise<unknown> = Promise.resolve()
  for (;;) {
    const slots = await inTransaction(pool, async (client) => {
      const { rows } = await client.query<Slot>(
        `select due.id as "scheduleId", to_json(due.next_slot_at) #>> '{}' as "scheduledFor"
        from unnest($1::text[]) as lanes(lane)
        cross join lateral (
          select id, next_slot_at from carillon.schedules
          where schedules.lane = lanes.lane and state = 'active' and due_at <= now()
          order by due_at, id
          limit $2
          for update skip locked
        ) as due
        limit $3`,
        [lanes, Math.ceil(BATCH / 16), BATCH],
      )
      if (rows.length > 0) await beginSlots(client, rows)
      return rows
    })
    await settling
    if (slots.length === 0) return (performance.now() - startedAt) / 1000
    settling = inTransaction(pool, (client) => settleSlots(client, slots))
  }
}

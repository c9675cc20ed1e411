import { lookOnce } from '../audit/module-checks.ts'
import type { Db } from '../db/database.ts'
import type { Json } from '../kernel/json.ts'
import type { LoadedModule } from '../ports/module.ts'
import type { Check } from './checks.ts'

/** How many looks the doctor takes for one check. The workers look at all rows, a page at a time. */
const LOOKS_MAX = 20
const NAMED_MAX = 5

/** Makes the checks of a module from the first row on. A look that throws fails the check of the whole module. */
export async function examineModule(db: Db, { manifest, parts }: LoadedModule): Promise<Check> {
  const name = `module ${manifest.name}` as const
  const checks = parts.checks ?? []
  const found: string[] = []
  for (const check of checks) {
    let after: Json = null
    for (let looks = 0; looks < LOOKS_MAX; looks += 1) {
      const looked = await lookOnce(db, manifest.name, check, after)
      found.push(
        ...looked.found.map(({ tenantId, projectId, detail }) => {
          return tenantId === null ? detail : `${detail} (in ${tenantId}/${projectId ?? ''})`
        }),
      )
      after = looked.next
      if (after === null) break
    }
  }
  const names = checks.map((check) => check.name)
  if (found.length === 0) {
    return { name, status: 'ok', message: `${names.join(', ')}: nothing found`, detail: { checks: names } }
  }
  const rest = found.length > NAMED_MAX ? ` (and ${found.length - NAMED_MAX} more)` : ''
  const message = `${found.slice(0, NAMED_MAX).join('; ')}${rest}`
  return { name, status: 'failed', message, detail: { checks: names, findings: found } }
}

import type { Results } from '../results.ts'

/** The figures to reach, for a terminal. */
export function checksText({ checks, failures }: Pick<Results, 'checks' | 'failures'>): string {
  const width = Math.max(...checks.map(({ title }) => title.length))
  const lines = checks.map(({ figure, title, wanted, measured, isReached }) => {
    const verdict = isReached === null ? '-' : isReached ? 'yes' : 'NO'
    return `${figure}  ${title.padEnd(width)}  ${wanted.padEnd(18)}  ${measured.padEnd(22)}  ${verdict}`
  })
  const failed = failures.map(
    ({ work, subject, size, reason }) => `not measured: ${work}, ${subject}, ${size}: ${reason}`,
  )
  return `${[...lines, ...failed].join('\n')}\n`
}

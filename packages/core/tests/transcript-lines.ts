import { CALLER, type Pipeline } from './pipeline.ts'

interface OfRun {
  readonly runId: string
}

/** The lines of a run as text, `<attempt> <kind> <text or message>`. */
export async function transcriptOf({ scheduler }: Pipeline, run: OfRun | undefined): Promise<string[]> {
  const { lines } = await scheduler.transcript(CALLER, run?.runId ?? '', { limit: 500 })
  return lines.map(({ attempt, entry }) =>
    [attempt, entry.kind, textOf(entry)].filter((part) => part !== undefined).join(' '),
  )
}

function textOf({ text, message }: Readonly<Record<string, unknown>>): string | undefined {
  const shown = text ?? message
  return typeof shown === 'string' ? shown : undefined
}

/** Resolves once a run has this many lines. */
export async function whenStored(pipeline: Pipeline, run: OfRun, lines: number): Promise<void> {
  while ((await transcriptOf(pipeline, run)).length < lines) continue
}

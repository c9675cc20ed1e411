import { Hooks } from '../src/pipeline/hooks.ts'
import { Pipeline, type PipelineDeps, type PipelineOptions } from '../src/pipeline/pipeline.ts'
import { TranscriptWriters } from '../src/pipeline/transcript-writers.ts'
import type { Callback } from '../src/ports/target.ts'
import { DAY } from './durations.ts'

/** The parts that a test names; the others are those of a worker. */
type TestDeps = Omit<PipelineDeps, 'hooks' | 'transcripts' | 'callback'> &
  Partial<Pick<PipelineDeps, 'hooks' | 'transcripts' | 'callback'>>

/** The pipeline of a worker that a test drives by hand. */
export function pipelineOf(deps: TestDeps, options: Partial<PipelineOptions> = {}): Pipeline {
  const parts = { hooks: new Hooks(deps), transcripts: new TranscriptWriters(deps), callback: noCallback, ...deps }
  return new Pipeline(parts, { retentionMs: 90 * DAY, ...options })
}

function noCallback(): Callback {
  throw new Error('expected no callback in this test, got one')
}

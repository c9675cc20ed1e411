import { messageOf, PROBLEMS_MAX } from '@carillon/api'

import type { Tx } from '../db/database.ts'
import { isAborted, isUsable, LentTransaction, withSavepoint } from '../db/transact.ts'
import type { Clock } from '../kernel/clock.ts'
import { CarillonError, invalidInput, type Problem } from '../kernel/errors.ts'
import type { Json } from '../kernel/json.ts'
import { type Caller, scopeOf } from '../kernel/scope.ts'
import type { SchedulePolicy } from '../policy/schedule-policy.ts'
import type { PlacedDraft, Target } from '../ports/target.ts'

/** How long the hooks of one request may take together: they hold its transaction, and on an edit the lock of the schedule. */
const HOOKS_LIMIT_MS = 10_000

interface HookRules {
  readonly targets: ReadonlyMap<string, Target>
  readonly clock: Clock
}

interface HookOptions {
  readonly rules: HookRules
  /** True for a preview: whatever a hook writes is rolled back. */
  readonly isDryRun: boolean
}

/** A checked input with its owner, as its target's hooks see it. */
export interface HookInput {
  readonly target: { readonly kind: string }
  readonly policy: SchedulePolicy
  readonly grantId: string | null
  readonly ownerSubject: string
}

/**
 * Asks the targets of inputs what is wrong with them, in the transaction that writes the schedules. Stops once an error could name no
 * further problem.
 * @throws CarillonError `invalid_input` with the problems as the hooks name them, or `target_hook_failed`
 */
export async function checkInTargets(
  tx: Tx,
  caller: Caller,
  inputs: readonly { readonly root: string; readonly input: HookInput }[],
  options: HookOptions,
): Promise<void> {
  const calls = new HookCalls(tx, options)
  const problems: Problem[] = []
  for (const { root, input } of inputs) {
    const target = options.rules.targets.get(input.target.kind)
    if (target?.checkIn === undefined) continue
    const found = await calls.call(target, 'checkIn', async (lent) =>
      checkedProblems(await target.checkIn?.(lent, draftOf(input, caller))),
    )
    problems.push(...found.map(({ path, message }) => ({ path: joined(root, path), message })))
    if (problems.length >= PROBLEMS_MAX) break
  }
  if (problems.length > 0) throw invalidInput(problems)
}

/**
 * What the target of an input shows in a preview, besides the slots. Undefined if it shows nothing.
 * @throws CarillonError `target_hook_failed`
 */
export async function previewTarget(
  tx: Tx,
  caller: Caller,
  { input, slots }: { readonly input: HookInput; readonly slots: readonly number[] },
  rules: HookRules,
): Promise<Json | undefined> {
  const target = rules.targets.get(input.target.kind)
  if (target?.preview === undefined) return undefined
  const calls = new HookCalls(tx, { rules, isDryRun: true })
  return calls.call(target, 'preview', async (lent) =>
    // Copied: only what JSON can hold is shown.
    asJson(await target.preview?.(lent, draftOf(input, caller), slots)),
  )
}

/** Calls hooks of one request, each under a savepoint, until their time is over. */
class HookCalls {
  readonly #tx: Tx
  readonly #clock: Clock
  readonly #isDryRun: boolean
  readonly #endsMs: number

  constructor(tx: Tx, { rules: { clock }, isDryRun }: HookOptions) {
    this.#tx = tx
    this.#clock = clock
    this.#isDryRun = isDryRun
    this.#endsMs = clock.monotonicMs() + HOOKS_LIMIT_MS
  }

  async call<Result>(
    { kind }: Target,
    name: 'checkIn' | 'preview',
    hook: (lent: Tx) => Promise<Result>,
  ): Promise<Result> {
    try {
      return await this.#withinSavepoint((tx) => this.#limited(tx, hook))
    } catch (error) {
      // Not the hook's fault: Postgres aborted the transaction because of others, or the connection is lost.
      if (isAborted(error) || !(await isUsable(this.#tx))) throw error
      // A hook may refuse the request itself, such as by a call of the scheduler.
      if (error instanceof CarillonError) throw error
      const message = `the target kind ${kind} could not check this schedule: ${name} failed`
      throw new CarillonError('target_hook_failed', message, { cause: error })
    }
  }

  /** In a preview, what the hook wrote is rolled back even if it succeeds. */
  async #withinSavepoint<Result>(work: (tx: Tx) => Promise<Result>): Promise<Result> {
    if (!this.#isDryRun) return withSavepoint(this.#tx, work)
    let done: { readonly result: Result } | undefined
    try {
      await withSavepoint(this.#tx, async (tx) => {
        done = { result: await work(tx) }
        throw new RolledBack()
      })
    } catch (error) {
      if (!(error instanceof RolledBack)) throw error
    }
    if (done === undefined) throw new Error('expected a result of the hook, got none')
    return done.result
  }

  async #limited<Result>(tx: Tx, hook: (lent: Tx) => Promise<Result>): Promise<Result> {
    const lent = new LentTransaction(tx)
    const late = Promise.withResolvers<never>()
    const stopTimer = this.#clock.after(Math.max(0, this.#endsMs - this.#clock.monotonicMs()), () => {
      late.reject(new Error(`expected an end within ${HOOKS_LIMIT_MS / 1000} s, got none`))
    })
    try {
      return await Promise.race([hook(lent), late.promise])
    } finally {
      stopTimer()
      lent.close()
    }
  }
}

class RolledBack extends Error {}

function draftOf({ target, policy, grantId, ownerSubject }: HookInput, caller: Caller): PlacedDraft<never> {
  return { ...scopeOf(caller), ownerSubject, spec: target as never, policy, grantId }
}

/** Checked at run time: a module may be plain JavaScript. */
function checkedProblems(problems: unknown): readonly Problem[] {
  const isProblem = (each: unknown): each is Problem =>
    typeof each === 'object' &&
    each !== null &&
    typeof (each as Partial<Problem>).path === 'string' &&
    typeof (each as Partial<Problem>).message === 'string'
  if (Array.isArray(problems) && problems.every(isProblem)) return problems
  throw new TypeError('expected a list of problems, each with a path and a message, got something else')
}

function asJson(value: Json | undefined): Json {
  try {
    return JSON.parse(JSON.stringify(value ?? null)) as Json
  } catch (error) {
    throw new TypeError(`expected JSON, got something else: ${messageOf(error)}`, { cause: error })
  }
}

function joined(root: string, path: string): string {
  return root === '' || path === '' ? root + path : `${root}.${path}`
}

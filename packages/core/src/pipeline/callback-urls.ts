import { callbackToken } from '../ledger/callback-token.ts'
import type { HeldRun } from '../ledger/held-run.ts'
import type { Callback } from '../ports/target.ts'

/** Where the called side completes runs: the public URL of the API, and a token for each run. */
export class CallbackUrls {
  readonly #publicUrl: () => string | null
  #key: Buffer | undefined

  /** @param publicUrl the URL at which the called side reaches the API; null if there is none */
  constructor(publicUrl: string | null | (() => string)) {
    this.#publicUrl = typeof publicUrl === 'function' ? publicUrl : () => publicUrl
  }

  /** @param key the secret of the installation, which a worker reads when it starts */
  useKey(key: Buffer): void {
    this.#key = key
  }

  /** @throws if this worker does not know the public URL: the attempt then fails and says so */
  of(run: HeldRun): Callback {
    const publicUrl = this.#publicUrl()
    if (publicUrl === null) {
      throw new Error(
        'expected the public URL of the API for callbacks, got none: set CARILLON_PUBLIC_URL on the worker',
      )
    }
    if (this.#key === undefined) throw new Error('expected the key of callbacks before the first run, got none')
    const url = `${publicUrl.replace(/\/+$/, '')}/api/v1/runs/${run.runId}/complete?attempt=${run.attempt}`
    return { url, token: callbackToken(this.#key, run) }
  }
}

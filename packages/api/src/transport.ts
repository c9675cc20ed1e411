import { paramsIn, pathOf, type Operation } from './operation.ts'
import { problem, type FieldProblem, type Problem, type ProblemCode } from './problem.ts'

/** The server refused a request. */
export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly status: number
  readonly code: ProblemCode
  readonly errors: readonly FieldProblem[]
  /** Seconds after which another try may succeed; null if the server named none. */
  readonly retryAfterSeconds: number | null

  constructor(
    { code, status, detail, errors }: Pick<Problem, 'code' | 'status' | 'detail' | 'errors'>,
    retryAfterSeconds: number | null,
  ) {
    super(detail)
    this.status = status
    this.code = code
    this.errors = errors
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** Nothing answered, or what answered is not Carillon. */
export class UnreachableError extends Error {
  override readonly name = 'UnreachableError'
}

export interface ClientOptions {
  /** @default the fetch of the runtime */
  readonly fetch?: typeof fetch
  /** Aborts every request of the client. */
  readonly signal?: AbortSignal
}

/** The server refused a request to an operation that writes its refusals in a format of its own. */
export class RefusedError extends Error {
  override readonly name = 'RefusedError'
  readonly status: number
  /** What the operation describes in `errors`. */
  readonly body: unknown

  constructor(status: number, body: unknown) {
    super(`the server refused the request with the status ${status}`)
    this.status = status
    this.body = body
  }
}

/** A request to one operation. */
export interface OperationRequest {
  readonly params?: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string | number | undefined>> | undefined
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: unknown
}

/** Sends the requests of a client. */
export class Transport {
  readonly #url: string
  readonly #key: string | null
  readonly #options: ClientOptions

  /** @param key null: requests carry no key, for operations that check their callers themselves */
  constructor(url: string, key: string | null, options: ClientOptions) {
    this.#url = url
    this.#key = key
    this.#options = options
  }

  /** @throws ApiError or RefusedError if the server refuses the request, UnreachableError if it is not Carillon that answers */
  async send(operation: Operation, request: OperationRequest): Promise<Response> {
    const response = await this.#fetch(operation, request)
    if (response.ok) return response
    throw await this.#refusal(operation, response)
  }

  /** The answer to a request, parsed as JSON; undefined if it has no body. */
  async ask(operation: Operation, request: OperationRequest): Promise<unknown> {
    const response = await this.send(operation, request)
    return response.status === 204 ? undefined : this.#readJson(response)
  }

  /** The error to throw. A caller that aborted the request gets its own reason back, not an UnreachableError. */
  unlessAborted(error: unknown, message: string): unknown {
    return this.#options.signal?.aborted === true ? error : new UnreachableError(message, { cause: error })
  }

  async #fetch(operation: Operation, request: OperationRequest): Promise<Response> {
    const { body } = request
    const init: RequestInit = {
      method: operation.method.toUpperCase(),
      headers: allHeaders(this.#key, request),
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(this.#options.signal === undefined ? {} : { signal: this.#options.signal }),
    }
    const target = urlOf(this.#url, pathOf(operation), request)
    try {
      return await (this.#options.fetch ?? fetch)(target, init)
    } catch (error) {
      const message = `expected an answer from a Carillon server at ${this.#url}, got none: is it running there?`
      throw this.unlessAborted(error, message)
    }
  }

  async #refusal({ errors }: Operation, response: Response): Promise<Error> {
    const body = await this.#readJson(response)
    const parsed = problem.safeParse(body)
    if (!parsed.success) {
      return errors === undefined ? this.#notCarillon(response) : new RefusedError(response.status, body)
    }
    const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN)
    return new ApiError(parsed.data, Number.isFinite(retryAfter) ? retryAfter : null)
  }

  async #readJson(response: Response): Promise<unknown> {
    try {
      return await response.json()
    } catch (error) {
      throw this.#notCarillon(response, { cause: error })
    }
  }

  #notCarillon({ status }: Response, options?: ErrorOptions): UnreachableError {
    const message = `expected an answer from a Carillon server at ${this.#url}, got another one (status ${status})`
    return new UnreachableError(`${message}: check the URL`, options)
  }
}

/** The URL of a request, below the path of `url`: a proxy may serve Carillon below a path. */
function urlOf(url: string, path: string, { params = {}, query = {} }: OperationRequest): URL {
  const filled = paramsIn(path).reduce(
    (text, name) => text.replace(`{${name}}`, () => encodeURIComponent(params[name] ?? '')),
    path,
  )
  const target = URL.parse(url.replace(/\/+$/, '') + filled)
  if (target === null) throw new TypeError(`expected a URL such as http://127.0.0.1:7400, got ${JSON.stringify(url)}`)
  for (const [name, value] of Object.entries(query)) {
    if (value !== undefined) target.searchParams.set(name, String(value))
  }
  return target
}

function allHeaders(key: string | null, { headers = {}, body }: OperationRequest): Headers {
  // Checked before fetch does, whose message about an invalid header would show the key.
  if (key !== null && !/^[\x21-\x7e]+$/.test(key)) {
    throw new TypeError('expected an API key of visible ASCII characters, got another')
  }
  return new Headers({
    ...(key === null ? {} : { authorization: `Bearer ${key}` }),
    ...headers,
    ...(body === undefined ? {} : { 'content-type': 'application/json' }),
  })
}

/** The part of a browser that signing in needs: it keeps a cookie, and does not follow redirects by itself. */
export class Browser {
  cookie: string | undefined

  get(url: string): Promise<Response> {
    return this.#ask(url)
  }

  /** Submits a form as a page would, with its origin. */
  submit(url: string, { origin = new URL(url).origin }: { readonly origin?: string } = {}): Promise<Response> {
    return this.#ask(url, { method: 'POST', body: new URLSearchParams() }, { origin })
  }

  async text(url: string): Promise<string> {
    return (await this.get(url)).text()
  }

  async #ask(url: string, options: RequestInit = {}, headers: Record<string, string> = {}): Promise<Response> {
    const response = await fetch(url, {
      ...options,
      redirect: 'manual',
      headers: { ...headers, ...(this.cookie === undefined ? {} : { cookie: this.cookie }) },
    })
    const [set] = response.headers.getSetCookie()
    if (set !== undefined) this.cookie = set.split(';')[0] ?? ''
    return response
  }
}

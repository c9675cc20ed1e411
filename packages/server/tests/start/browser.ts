/** As much of a browser as signing in needs: it keeps a cookie, and follows no redirect by itself. */
export class Browser {
  cookie: string | undefined

  get(url: string): Promise<Response> {
    return this.#ask(url)
  }

  /** As the form of a page does, which says where it is from. */
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

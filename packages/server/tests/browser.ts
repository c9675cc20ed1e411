/** As much of a browser as signing in needs: it keeps a cookie, and follows no redirect by itself. */
export class Browser {
  cookie: string | undefined

  async get(url: string, options: { readonly method?: string } = {}): Promise<Response> {
    const response = await fetch(url, {
      ...options,
      redirect: 'manual',
      headers: this.cookie === undefined ? {} : { cookie: this.cookie },
    })
    const [set] = response.headers.getSetCookie()
    if (set !== undefined) this.cookie = set.split(';')[0] ?? ''
    return response
  }

  async text(url: string): Promise<string> {
    return (await this.get(url)).text()
  }
}

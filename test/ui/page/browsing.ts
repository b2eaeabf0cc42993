/** Pages in a browser, with everything that goes wrong in them. */
import axe from 'axe-core'
import type { BrowserContext, Page } from 'playwright-core'
import type { World } from './world.ts'

/** A page, and the errors of its scripts and of its policy. */
export class Visit {
  readonly page: Page
  readonly errors: string[] = []
  readonly #url: string

  private constructor(page: Page, url: string) {
    this.page = page
    this.#url = url
    page.setDefaultTimeout(20_000)
    page.on('pageerror', (error) => this.errors.push(String(error)))
    page.on('console', (message) => {
      // Violations of the policy are errors on the console. A refused request is no error of the page: it shows it.
      if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
        this.errors.push(message.text())
    })
    page.on('request', (request) => {
      if (!request.url().startsWith(url) && !request.url().startsWith('data:'))
        this.errors.push(`a request to ${request.url()}`)
    })
  }

  static async begin(context: BrowserContext, { url }: Pick<World, 'url'>): Promise<Visit> {
    return new Visit(await context.newPage(), url)
  }

  /** Goes to a page of the board, and waits for what it shows. */
  async open(path: string, { board = 'main' } = {}): Promise<void> {
    await this.page.goto(`${this.#url}b/${board}/${path}`)
    await this.page.getByRole('heading', { level: 1 }).waitFor()
    await this.settled()
  }

  /** Resolves when nothing is read for the first time. */
  async settled(): Promise<void> {
    await this.page.locator('main [aria-busy=true]').first().waitFor({ state: 'detached' })
  }

  /** Returns what axe-core finds, one line for each violation. */
  async findBarriers(rules?: readonly string[]): Promise<readonly string[]> {
    const only = rules === undefined ? {} : { runOnly: { type: 'rule', values: rules } }
    const options = { resultTypes: ['violations'], ...only }
    await this.page.evaluate(axe.source)
    const { violations } = (await this.page.evaluate(`axe.run(document, ${JSON.stringify(options)})`)) as AxeResult
    return violations.flatMap(({ id, nodes }) =>
      nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 200)}: ${failureSummary}`),
    )
  }

  /** Returns by how many pixels the page is wider than the window. */
  overflow(): Promise<number> {
    return this.page.evaluate<number>('document.documentElement.scrollWidth - innerWidth')
  }
}

interface AxeResult {
  readonly violations: readonly {
    readonly id: string
    readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[]
  }[]
}

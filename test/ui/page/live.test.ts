/** Changes arrive by themselves: in all tabs by one stream, after a restart of the server, and without a stream. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, onTestFinished } from 'vitest'
import { hasBrowser, startBrowser } from '../../support/chromium.ts'
import { startProxy, type TcpProxy } from '../../support/proxy.ts'
import { usual as test, testRows, variant } from '../../variant.ts'
import { Visit } from './browsing.ts'
import { World } from './world.ts'

describe.skipIf(!hasBrowser)('live', () => {
  let world: World
  let browser: Browser

  beforeAll(async () => {
    ;[world, browser] = await Promise.all([World.open(), startBrowser()])
  })

  afterAll(async () => {
    await browser?.close()
    await world?.[Symbol.asyncDispose]()
  })

  /** A browser with tabs. */
  async function tabs(number: number): Promise<Page[]> {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const pages: Page[] = []
    for (let n = 0; n < number; n++) {
      const visit = await Visit.begin(context, world)
      await visit.open('jobs')
      pages.push(visit.page)
    }
    await Promise.all(pages.map((page) => isLive(page)))
    return pages
  }

  const isLive = (page: Page) => page.locator('header .live.is-live').waitFor()
  const post = (name: string) => world.board.post('unknown', {}, { name })
  const seen = (page: Page, name: string) => page.getByRole('rowheader', { name, exact: true }).waitFor()

  testRows([[2], [7]], ([number]) => number === 2)(
    '%d tabs share one stream, and the next takes it over',
    async (number) => {
      await expect.poll(() => world.streams).toBe(0)
      const pages = await tabs(number)
      expect(world.streams).toBe(1)
      await post(`for ${number} tabs`)
      await Promise.all(pages.map((page) => seen(page, `for ${number} tabs`)))
      const [holder, ...rest] = pages
      await holder?.close()
      await Promise.all(rest.map(isLive))
      await post(`after the first of ${number}`)
      await Promise.all(rest.map((page) => seen(page, `after the first of ${number}`)))
      // The server learns of the closed tab a moment later.
      await expect.poll(() => world.streams).toBe(1)
    },
  )

  variant('a new tab shows at once that the stream of another tab is open', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const first = await Visit.begin(context, world)
    // The report that this tab would send every 10 s does not come.
    await first.page.addInitScript(
      '{ const every = setInterval; setInterval = (call, ms) => every(call, ms === 10_000 ? 1e8 : ms) }',
    )
    await first.open('jobs')
    await isLive(first.page)
    const second = await Visit.begin(context, world)
    await second.open('jobs')
    await isLive(second.page)
  })

  variant(
    'a restart of the server is survived: the page says that it reads again, and then that changes arrive',
    async () => {
      const pages = await tabs(2)
      await world.stop()
      await Promise.all(pages.map((page) => page.getByText('The stream of changes is away').waitFor()))
      await post('while it was away')
      await world.serve()
      await Promise.all(pages.map(isLive))
      await Promise.all(pages.map((page) => seen(page, 'while it was away')))
    },
  )

  variant('without locks the page reads again by itself', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    await context.addInitScript('delete Navigator.prototype.locks')
    const visit = await Visit.begin(context, world)
    await visit.open('jobs')
    await visit.page.locator('header .live.is-polling').waitFor()
    await post('without a stream')
    await seen(visit.page, 'without a stream')
    expect(visit.errors).toEqual([])
  })

  test('a hidden tab reads nothing, and reads again when it is seen', async () => {
    const [page] = await tabs(1)
    if (page === undefined) throw new Error('there is no tab')
    const hide = (isHidden: boolean) =>
      page.evaluate(`(() => {
        Object.defineProperty(document, 'hidden', { configurable: true, get: () => ${isHidden} })
        document.dispatchEvent(new Event('visibilitychange'))
      })()`)
    await hide(true)
    await page.locator('header .live.is-paused').waitFor()
    await post('while it was hidden')
    await hide(false)
    await seen(page, 'while it was hidden')
    await isLive(page)
  })

  /** A page whose clock the test moves, and the network between it and the server. */
  async function distantPage(): Promise<{ page: Page; network: TcpProxy }> {
    const network = await startProxy({ port: Number(new URL(world.url).port) })
    const context = await browser.newContext()
    onTestFinished(async () => {
      await context.close()
      await network.close()
    })
    const visit = await Visit.begin(context, { url: `http://127.0.0.1:${network.port}/` })
    await visit.page.clock.install()
    await visit.open('jobs')
    await isLive(visit.page)
    return { page: visit.page, network }
  }

  /** Moves the clock of a page on, five seconds at a time, until it shows a job. */
  const seenInTime = (page: Page, name: string) =>
    expect
      .poll(
        async () => {
          await page.clock.runFor(5_000)
          return page.getByRole('rowheader', { name, exact: true }).count()
        },
        { timeout: 30_000 },
      )
      .toBe(1)

  variant(
    'after a sleep of the machine the page reads again, though its connections are dead and look open',
    async () => {
      const { page, network } = await distantPage()
      network.freeze()
      await post('while the machine slept')
      await page.clock.fastForward('08:00:00')
      await seenInTime(page, 'while the machine slept')
      await isLive(page)
      await post('after the sleep')
      await seen(page, 'after the sleep')
    },
  )

  variant('a stream that has become silent is opened anew', async () => {
    const { page, network } = await distantPage()
    network.freeze()
    await post('on a dead stream')
    await seenInTime(page, 'on a dead stream')
    // After 40 s the page opens another stream; the browser may open it over a dead connection, too, and then there is a next one.
    const isLiveAgain = async () => {
      await page.clock.runFor(45_000)
      const live = page.locator('header .live.is-live').waitFor({ timeout: 3_000 })
      return live.then(
        () => true,
        () => false,
      )
    }
    await expect.poll(isLiveAgain, { timeout: 45_000 }).toBe(true)
    await post('on the next stream')
    await seen(page, 'on the next stream')
  })

  variant('a stream that does not open is given up after 40 s, and another one is opened', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const visit = await Visit.begin(context, world)
    const { page } = visit
    await page.clock.install()
    let opened = 0
    await page.route(/\/boards\/main\/events\?/, async (route) => {
      opened += 1
      if (opened > 1) await route.continue()
    })
    await visit.open('jobs')
    await expect.poll(() => opened).toBe(1)
    await pauseClock(page)
    await page.clock.runFor(35_000)
    expect(opened).toBe(1)
    // Without an open stream, the page reads the board again by itself.
    await page.locator('header .live.is-polling').waitFor()
    await page.clock.runFor(20_000)
    await expect.poll(() => opened).toBe(2)
    await page.clock.resume()
    await post('on the stream that opened')
    await seen(page, 'on the stream that opened')
    await isLive(page)
  })

  variant('a read without an answer ends after 30 s, and the page reads again by itself', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const visit = await Visit.begin(context, world)
    const { page } = visit
    await page.clock.install()
    await visit.open('jobs')
    await isLive(page)
    let reads = 0
    await page.route(/\/boards\/main\/jobs(\?|$)/, async (route) => {
      reads += 1
      if (reads > 1) await route.continue()
    })
    await post('behind a lost answer')
    await expect.poll(() => reads).toBe(1)
    // Less than the 40 s after which the stream would count as silent, and everything would be read.
    await pauseClock(page)
    await page.clock.runFor(31_000)
    await page.clock.runFor(6_000)
    await expect.poll(() => reads).toBe(2)
    await page.clock.resume()
    await seen(page, 'behind a lost answer')
  })

  test('a job is followed to its end', async () => {
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const visit = await Visit.begin(context, world)
    const job = await post('to be cancelled')
    await visit.open(`jobs/${job.uuid}`)
    await isLive(visit.page)
    await world.board.cancel(job, { reason: 'by another program' })
    await visit.page.getByText('by another program').first().waitFor()
    expect(visit.errors).toEqual([])
  })
})

/** Pauses the clock of the page a little ahead of its time. On a busy machine, that moment may be over when the page receives it. */
async function pauseClock(page: Page): Promise<void> {
  for (let ahead = 100; ; ahead *= 3) {
    const at = (await page.evaluate<number>('Date.now()')) + ahead
    const error = await page.clock.pauseAt(at).then(
      () => undefined,
      (failure: unknown) => failure,
    )
    if (error === undefined) return
    if (ahead > 3_000) throw error
  }
}

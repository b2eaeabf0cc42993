/** A board of 100,000 jobs (in `npm test` 25,000): no page reads them all, and a search goes on to the end. */
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { expect, onTestFinished, test } from 'vitest'
import { openBoard } from '../../../src/index.ts'
import { dashboard } from '../../../src/ui/index.ts'
import { hasBrowser, startBrowser } from '../../support/chromium.ts'
import { count } from '../../support/counts.ts'
import { Visit } from './browsing.ts'

/** More than one request looks at. */
const JOBS = count({ test: 25_000, long: 100_000 })
const TOTAL = JOBS.toLocaleString('en-US')
/** Where the jobs are that are searched for: at the beginning, in the middle, and the last one. */
const NEEDLES = [7, JOBS / 2 + 1_000, JOBS - 1]

test.skipIf(!hasBrowser)(
  'a long board is shown at once, and searched to its end',
  async () => {
    const board = await openBoard('memory:')
    onTestFinished(() => board.close())
    const jobs = Array.from({ length: JOBS }, (_, n) => {
      return { flow: 'resize', store: {}, name: NEEDLES.includes(n) ? `needle ${n}` : `image ${n}` }
    })
    const posted = await board.postMany(jobs)
    expect(posted.filter((result) => 'error' in result)).toEqual([])
    const shown = dashboard({ boards: { main: board } })
    onTestFinished(() => shown.close())
    const server = createServer(shown.node)
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => {
      server.close()
      server.closeAllConnections()
    })
    const browser = await startBrowser()
    onTestFinished(() => browser.close())
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
    const visit = await Visit.begin(await browser.newContext(), { url })
    const { page } = visit

    await visit.open('overview')
    await page.getByRole('link', { name: /Waiting$/ }).waitFor()
    await visit.open('jobs')
    await page.getByRole('rowheader', { name: 'image 0', exact: true }).waitFor()
    const progress = page.getByRole('main').getByRole('status').filter({ hasText: 'Looked at' })
    const read = async () => {
      const [, found, looked = '', total, end] =
        /([\d,]+) found\. Looked at ([\d,]+)(?: of ([\d,]+))? jobs(: that is all)?/.exec(await progress.innerText()) ??
        []
      return { looked: Number(looked.replaceAll(',', '')), total, found: Number(found), isEnd: end !== undefined }
    }
    // The first page needs no more jobs than it shows.
    const first = await read()
    expect(first).toMatchObject({ total: TOTAL, isEnd: false })
    expect(first.looked).toBeLessThanOrEqual(200)

    await visit.open(`jobs?q=${encodeURIComponent('name:needle*')}`)
    await page.getByRole('rowheader', { name: 'needle 7' }).waitFor()
    let before = await read()
    expect(before.looked).toBeGreaterThan(0)
    expect(before).toMatchObject({ total: TOTAL, isEnd: false })
    while (!before.isEnd) {
      const { looked } = before
      await page.getByRole('button', { name: 'Show more' }).click()
      // On a busy machine the page may read what it shows anew meanwhile: then it has looked at fewer for a moment.
      await expect.poll(async () => (await read()).looked, { timeout: 20_000 }).toBeGreaterThan(looked)
      before = await read()
    }
    expect(before).toMatchObject({ looked: JOBS, found: NEEDLES.length })
    for (const n of NEEDLES) await page.getByRole('rowheader', { name: `needle ${n}`, exact: true }).waitFor()
    expect(visit.errors).toEqual([])
  },
  300_000,
)

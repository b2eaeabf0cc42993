/** The board of the demo in a browser, and the picture of it in the README: `JOBBOARD_SCREENSHOTS=docs` writes it anew. */
import { mkdir, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { expect, onTestFinished, test } from 'vitest'
import { ROOT } from '../../support/build.ts'
import { hasBrowser, startBrowser } from '../../support/chromium.ts'
import { Visit } from './browsing.ts'
import { openDemo } from './demo.ts'

const PICTURE = join(ROOT, 'docs/dashboard.png')
const MAX_BYTES = 200_000
/** The overview, and the flow of a job in front of it. */
const OVERVIEW = { width: 1_200, height: 880 }
const JOB = { width: 480, height: 800 }

test.skipIf(!hasBrowser)('a newcomer sees what waits, what failed, and how far an import is', async () => {
  const demo = await openDemo()
  onTestFinished(() => demo[Symbol.asyncDispose]())
  const browser = await startBrowser()
  onTestFinished(() => browser.close())
  const context = await browser.newContext({ colorScheme: 'light' })
  const overview = await Visit.begin(context, demo)
  await overview.page.setViewportSize(OVERVIEW)
  await overview.open('overview', { board: 'shop' })
  const main = overview.page.getByRole('main')
  for (const text of [
    'the template of day … is missing',
    'limit maps-api is stopped',
    'nightly report',
    'host-',
    'it rests for another',
  ])
    await main.getByText(text).filter({ visible: true }).first().waitFor()
  await isLive(overview.page)
  const job = await Visit.begin(context, demo)
  await job.page.setViewportSize(JOB)
  await job.open(`jobs/${demo.running}`, { board: 'shop' })
  for (const [state, part] of [
    ['success', 'unpack'],
    ['running', 'large'],
  ] as const)
    await job.page.locator(`svg .node.state-${state}`, { hasText: part }).waitFor()
  await isLive(job.page)
  expect([...overview.errors, ...job.errors]).toEqual([])
  const path =
    process.env['JOBBOARD_SCREENSHOTS'] === 'docs' ? PICTURE : join(import.meta.dirname, 'screenshots/demo.png')
  await mkdir(join(path, '..'), { recursive: true })
  await compose({
    browser,
    path,
    back: await overview.page.screenshot(),
    front: await job.page.locator('.canvas').screenshot(),
  })
})

test('the picture of the README has less than 200 kB', async () => {
  expect((await stat(PICTURE)).size).toBeLessThan(MAX_BYTES)
})

const isLive = (page: Page) => page.locator('header .live.is-live').waitFor()

interface Pictures {
  readonly browser: Browser
  readonly path: string
  readonly back: Buffer
  readonly front: Buffer
}

/** Writes one picture of two: the one in front is at the bottom on the right. */
async function compose({ browser, path, back, front }: Pictures): Promise<void> {
  const page = await browser.newPage({ viewport: { width: OVERVIEW.width + 80, height: OVERVIEW.height + 60 } })
  const toUrl = (png: Buffer) => `data:image/png;base64,${png.toString('base64')}`
  await page.setContent(
    `<style>
      body { margin: 0; background: #e7e9ee } img { position: absolute; border: 1px solid #9aa1ad }
      .back { top: 20px; left: 20px } .front { right: 20px; bottom: 20px }
    </style>
    <img class="back" src="${toUrl(back)}"><img class="front" src="${toUrl(front)}">`,
    { waitUntil: 'load' },
  )
  await page.screenshot({ path })
  await page.close()
}

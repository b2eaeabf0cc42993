/** Every page: it shows what is on the board, fits each width, and keeps nobody out. */
import { mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { hasBrowser, startBrowser } from '../../support/chromium.ts'
import { count } from '../../support/counts.ts'
import { Visit } from './browsing.ts'
import { HOSTILE, LONG, World } from './world.ts'

const WIDTHS = [1440, 320, 768] as const
/** The widths at which axe-core examines each page, and pictures are taken: in `npm test` the first. */
const EXAMINED = count({ test: 1, long: WIDTHS.length })
/** Looked at by people; not kept in git. */
const SCREENSHOTS = join(import.meta.dirname, 'screenshots')

/** The pages by name: the path, and texts that are on it. */
const PAGES: Readonly<
  Record<string, { readonly path: string | ((world: World) => string); readonly has: readonly string[] }>
> = {
  overview: {
    path: 'overview',
    has: [
      'Why jobs wait',
      'disk-3',
      'Flow disabled',
      'flow archive* is disabled',
      'What failed most',
      'the bucket refused',
      'nightly',
      'running',
    ],
  },
  jobs: { path: 'jobs', has: ['waits for disk', 'waits for a flow', '<img src=x'] },
  'job-waiting': { path: (world) => `jobs/${world.uuid('waits for disk')}`, has: ['Resource taken', 'disk-3'] },
  'job-running': { path: (world) => `jobs/${world.uuid('running')}`, has: ['60 %', 'resize images', 'image 12 of 20'] },
  'job-failed': { path: (world) => `jobs/${world.uuid('failed')}`, has: ['the bucket refused', 'Restore', 'upload'] },
  'job-ended': { path: (world) => `jobs/${world.uuid('ended')}`, has: ['Done'] },
  'job-settings': { path: (world) => `jobs/${world.uuid('waits for the api')}`, has: ['setting of quick', '0 of 4'] },
  'job-not-enabled': { path: (world) => `jobs/${world.uuid('waits for its flow')}`, has: ['Flow disabled'] },
  'job-hostile': {
    path: (world) => `jobs/${world.uuid(HOSTILE)}`,
    has: ['<img src=x', '‹ESC›', 'No conductor has the flow'],
  },
  'job-long': { path: (world) => `jobs/${world.uuid(LONG)}`, has: ['xxx'] },
  trash: { path: 'trash', has: ['the bucket refused', 'Restore', 'Purge'] },
  'trash-list': { path: 'trash?view=list', has: ['failed'] },
  flows: {
    path: 'flows',
    has: ['import', 'report', 'quick', 'archive*', 'disabled', 'maxAttempts=4 deadline=1h', 'the disk is full'],
  },
  'flow-settings': { path: 'flows?name=archive-2', has: ['archive*', 'enabled=false'] },
  flow: { path: 'flows?name=import', has: ['fetch', 'resize images', 'Versions'] },
  schedules: { path: 'schedules', has: ['nightly', 'upstream is down', 'Trigger now'] },
  limits: { path: 'limits', has: ['tenant/*', 'Stopped', 'disk-3'] },
  batches: { path: 'batches', has: ['migration'] },
  batch: { path: (world) => `batches/${world.uuid('batch')}`, has: ['migration', 'Cancel the batch'] },
  conductors: { path: 'conductors', has: ['import', 'running'] },
  history: { path: 'history', has: ['ended'] },
  logbooks: { path: 'logbooks', has: ['failed', 'running'] },
  doctor: { path: 'doctor', has: ['no conductor knows the flow unknown', 'start one'] },
  'unknown-page': { path: 'nothing', has: ['There is no such page'] },
}

async function shoot(page: Page, name: string): Promise<void> {
  await page.screenshot({ path: join(SCREENSHOTS, `${name}.png`), fullPage: true })
}

describe.skipIf(!hasBrowser)('the pages', () => {
  let world: World
  let browser: Browser

  beforeAll(async () => {
    await mkdir(SCREENSHOTS, { recursive: true })
    ;[world, browser] = await Promise.all([World.open(), startBrowser()])
  })

  afterAll(async () => {
    await browser?.close()
    await world?.[Symbol.asyncDispose]()
  })

  test.each(Object.keys(PAGES))('%s', async (name) => {
    const { path, has } = PAGES[name] ?? { path: '', has: [] }
    const context = await browser.newContext({ viewport: { width: 1440, height: 900 } })
    const visit = await Visit.begin(context, world)
    const { page, errors } = visit
    await visit.open(typeof path === 'string' ? path : path(world))
    for (const text of has) await page.getByRole('main').getByText(text).filter({ visible: true }).first().waitFor()
    const barriers: string[] = []
    for (const [index, width] of WIDTHS.entries()) {
      await page.setViewportSize({ width, height: 900 })
      await page.emulateMedia({ colorScheme: 'light' })
      expect(await visit.overflow(), `${width} pixels`).toBeLessThanOrEqual(0)
      if (index >= EXAMINED) continue
      barriers.push(...(await visit.findBarriers()).map((line) => `${width} light ${line}`))
      if (width !== 320) await shoot(page, `${name}-${width}-light`)
      await page.emulateMedia({ colorScheme: 'dark' })
      // Apart from colours, nothing depends on the scheme.
      barriers.push(...(await visit.findBarriers(['color-contrast'])).map((line) => `${width} dark ${line}`))
      if (width !== 768) await shoot(page, `${name}-${width}-dark`)
    }
    expect(barriers).toEqual([])
    expect(errors).toEqual([])
    expect(await page.title()).not.toBe('owned')
    await context.close()
  })

  test('the dialogs', async () => {
    const context = await browser.newContext()
    const visit = await Visit.begin(context, world)
    const { page } = visit
    await visit.open('limits')
    await page.getByRole('button', { name: 'Set a new limit' }).click()
    await page.getByRole('dialog').waitFor()
    expect(await visit.findBarriers()).toEqual([])
    await page.keyboard.press('Escape')
    await page.keyboard.press('?')
    await page.getByRole('dialog', { name: 'Keyboard shortcuts' }).waitFor()
    expect(await visit.findBarriers()).toEqual([])
    expect(visit.errors).toEqual([])
    await context.close()
  })

  test('a picture is coloured by the states of its atoms', async () => {
    const context = await browser.newContext()
    const visit = await Visit.begin(context, world)
    await visit.open(`jobs/${world.uuid('running')}`)
    const node = (name: string) => visit.page.locator('svg .node', { hasText: name })
    await visit.page.locator('svg .node.state-running', { hasText: 'resize images' }).waitFor()
    expect(await node('fetch').first().getAttribute('class')).toContain('state-success')
    await context.close()
  })
})

/** What people do on the page: search, go back, use keys, act on jobs, and be refused. */
import type { Browser, Page } from 'playwright-core'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished } from 'vitest'
import { hasBrowser, startBrowser } from '../../support/chromium.ts'
import { usual as test, variant } from '../../variant.ts'
import { Visit } from './browsing.ts'
import { World } from './world.ts'

describe.skipIf(!hasBrowser)('on the page', () => {
  let world: World
  let browser: Browser

  beforeAll(async () => {
    ;[world, browser] = await Promise.all([World.open(), startBrowser()])
  })

  afterAll(async () => {
    await browser?.close()
    await world?.[Symbol.asyncDispose]()
  })

  beforeEach(() => {
    Object.assign(world.rights, { level: 'admin', values: true })
  })

  async function open(path: string): Promise<Page> {
    const context = await browser.newContext()
    const visit = await Visit.begin(context, world)
    onTestFinished(async () => {
      await context.close()
      expect(visit.errors).toEqual([])
    })
    await visit.open(path)
    return visit.page
  }

  const row = (page: Page, name: string) => page.getByRole('rowheader', { name, exact: true })
  const box = (page: Page) => page.getByRole('combobox', { name: 'Search for jobs' })

  test('a search is in the address, and the back button undoes it', async () => {
    const page = await open('jobs')
    await row(page, 'waits for its time').waitFor()
    await box(page).fill('resource:disk-3 state:waiting')
    await page.keyboard.press('Enter')
    await row(page, 'waits for its time').waitFor({ state: 'detached' })
    await row(page, 'waits for disk').waitFor()
    expect(new URL(page.url()).searchParams.get('q')).toBe('resource:disk-3 state:waiting')
    await page.getByRole('link', { name: 'waits for disk' }).click()
    await page.getByRole('heading', { level: 1, name: 'waits for disk' }).waitFor()
    await page.goBack()
    await row(page, 'waits for disk').waitFor()
    expect(await box(page).inputValue()).toBe('resource:disk-3 state:waiting')
    await page.goBack()
    await row(page, 'waits for its time').waitFor()
    expect(await box(page).inputValue()).toBe('')
    await page.reload()
    await row(page, 'waits for its time').waitFor()
  })

  variant('a search that cannot be read is explained', async () => {
    const page = await open('jobs?q=colour%3Ared')
    await page.getByRole('alert').getByText('colour').waitFor()
    // The same search would fail again.
    expect(await page.getByRole('button', { name: 'Try again' }).count()).toBe(0)
  })

  variant('a number of the overview leads to the jobs that it counts', async () => {
    const page = await open('overview')
    await page.getByRole('link', { name: /Delayed$/ }).click()
    await row(page, 'waits for its time').waitFor()
    expect(await box(page).inputValue()).toBe('state:delayed')
  })

  variant('what failed most leads to those jobs', async () => {
    const page = await open('overview')
    const card = page.locator('.card', { hasText: 'What failed most' })
    await card
      .getByRole('link', { name: /the bucket refused/ })
      .last()
      .click()
    await row(page, 'failed').waitFor()
    const { pathname, searchParams } = new URL(page.url())
    expect([pathname, searchParams.get('view')]).toEqual(['/b/main/trash', 'list'])
    expect(searchParams.get('q')).toContain('group:')
  })

  variant('a reason has its time as the reader has chosen, and a link to the job in the way', async () => {
    const page = await open('jobs')
    const rows = page.getByRole('row')
    const resting = rows.filter({ has: row(page, 'waits for its time') })
    await resting.getByText('it rests for another').filter({ visible: true }).waitFor()
    await page.getByLabel('Times').selectOption('utc')
    await resting
      .getByText(/it rests until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC/)
      .filter({ visible: true })
      .waitFor()
    const held = rows.filter({ has: row(page, 'waits for disk') })
    await held
      .getByRole('link', { name: new RegExp(`${world.uuid('running').slice(-8)}$`) })
      .filter({ visible: true })
      .click()
    await page.getByRole('heading', { level: 1, name: 'running' }).waitFor()
  })

  test('everything can be done by keys alone', async () => {
    const page = await open('overview')
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await page.getByRole('heading', { level: 1, name: 'Jobs' }).waitFor()
    await page.keyboard.press('/')
    await page.keyboard.type('name:"waits for*"')
    await page.keyboard.press('Enter')
    await row(page, 'running').waitFor({ state: 'detached' })
    // While a search is read, there are no rows.
    await row(page, 'waits for disk').waitFor()
    await page.keyboard.press('Tab')
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.getByText('1 selected').waitFor()
    await page.keyboard.press('j')
    await page.keyboard.press('x')
    await page.getByText('2 selected').waitFor()
    const name = await page.locator(':focus').innerText()
    await page.keyboard.press('Enter')
    await page.getByRole('heading', { level: 1, name }).waitFor()
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    await page.keyboard.press('Escape')
    await page.getByRole('dialog').waitFor({ state: 'detached' })
    // The focus is where it was, and the heading says where that is.
    expect(await page.locator(':focus').innerText()).toBe(name)
  })

  test('what is typed as soon as the box is there stays in it', async () => {
    const page = await open('overview')
    await page.evaluate(`new MutationObserver((_, observer) => {
      const box = document.getElementById('search')
      if (box === null) return
      observer.disconnect()
      box.focus()
      box.value = 'name:early'
    }).observe(document.body, { childList: true, subtree: true })`)
    await page.keyboard.press('g')
    await page.keyboard.press('j')
    await row(page, 'running').waitFor()
    // The effects of the first frame have run.
    await page.evaluate('new Promise((done) => requestAnimationFrame(() => setTimeout(done)))')
    expect(await box(page).inputValue()).toBe('name:early')
    expect(await page.locator(':focus').getAttribute('id')).toBe('search')
  })

  variant('keys can be switched off', async () => {
    const page = await open('jobs')
    await page.getByRole('button', { name: 'Keyboard shortcuts' }).click()
    await page.getByRole('checkbox', { name: /Shortcuts without/ }).uncheck()
    await page.getByRole('button', { name: 'Close' }).click()
    await page.keyboard.press('g')
    await page.keyboard.press('t')
    await page.keyboard.press('?')
    await page.getByRole('dialog').waitFor()
    expect(page.url()).toContain('/jobs')
  })

  test('a job is cancelled with a reason, seen in the trash by it, and restored', async () => {
    const { uuid } = await world.board.post('unknown', {}, { name: 'unwanted' })
    const page = await open(`jobs/${uuid}`)
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    await page.getByLabel(/^Reason/).fill('ticket 4711')
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the job' }).click()
    await page.getByRole('button', { name: 'Restore' }).waitFor()
    await page.getByText('ticket 4711').first().waitFor()
    await page.getByRole('button', { name: 'Restore' }).click()
    await page.getByRole('region', { name: 'State' }).getByText('Waiting').waitFor()
    const job = await world.board.find(uuid)
    expect(job.state).toBe('UNCLAIMED')
  })

  variant('many jobs are purged after their number was typed', async () => {
    const many = Array.from({ length: 120 }, (_, n) => ({ flow: 'unknown', store: {}, name: `batch of many ${n}` }))
    for (const result of await world.board.postMany(many)) expect(result).not.toHaveProperty('error')
    const page = await open(`jobs?q=${encodeURIComponent('name:"batch of many*"')}`)
    await page.getByRole('checkbox', { name: 'All that match' }).check()
    await page.getByRole('button', { name: 'Cancel', exact: true }).click()
    // Before the number is typed the button does nothing.
    const yes = page.getByRole('dialog').getByRole('button', { name: 'Cancel 120 jobs' })
    await yes.waitFor()
    expect(await yes.isDisabled()).toBe(true)
    await page.getByLabel('Type 120 to confirm').fill('120')
    await yes.click()
    await page.getByText('120 jobs cancelled.').waitFor()
    await box(page).fill('state:trashed name:"batch of many*"')
    await page.keyboard.press('Enter')
    await page.getByRole('row', { name: 'Trashed' }).first().waitFor()
    await page.getByRole('checkbox', { name: 'All that match' }).check()
    await page.getByRole('button', { name: 'Purge', exact: true }).click()
    await page.getByLabel('Type 120 to confirm').fill('120')
    await page.getByRole('dialog').getByRole('button', { name: 'Purge 120 jobs' }).click()
    await page.getByText('120 jobs purged.').waitFor()
    await page.getByText(/^No (open )?job matches/).waitFor()
  })

  variant('a limit is set and stopped, and a schedule triggered', async () => {
    const page = await open('limits')
    await page.getByRole('button', { name: 'Set a new limit' }).click()
    await page.getByLabel('Key or pattern').fill('region/eu')
    await page.getByLabel('Jobs at once').fill('3')
    await page.getByRole('dialog').getByRole('button', { name: 'Set' }).click()
    const card = page.getByRole('article').filter({ hasText: 'region/eu' })
    await card.getByText('at most 3 at once').waitFor()
    await card.getByRole('button', { name: 'Stop', exact: true }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Stop' }).click()
    await card.getByText('Stopped').waitFor()
    await page.getByRole('link', { name: 'Schedules' }).click()
    const nightly = page.getByRole('article').filter({ hasText: 'nightly' })
    await nightly.getByRole('button', { name: 'Trigger now' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Trigger now' }).click()
    await nightly.getByRole('list').getByRole('link').first().waitFor()
  })

  test('settings of a flow are set, refused, changed and removed, and the flow is marked', async () => {
    const page = await open('flows')
    const dialog = page.getByRole('dialog')
    const settings = page.getByRole('row').filter({ hasText: 'rep*' })
    await page.getByRole('button', { name: 'Set settings of a flow' }).click()
    await dialog.getByLabel(/^Flow, or pattern/).fill('rep*')
    await dialog.getByLabel(/^Settings/).fill('maxAttempt=7')
    await dialog.getByRole('button', { name: 'Set settings of a flow' }).click()
    await dialog.getByRole('alert').getByText('there is no setting maxAttempt; did you mean maxAttempts?').waitFor()
    await dialog.getByLabel(/^Settings/).fill('maxAttempts=7  queue=slow jobs\nenabled=false')
    await dialog.getByLabel(/^Reason/).fill('ticket 4711')
    await dialog.getByRole('button', { name: 'Set settings of a flow' }).click()
    await settings.getByText('queue=slow jobs maxAttempts=7 enabled=false').waitFor()
    await settings.getByText('disabled', { exact: true }).waitFor()
    await settings.getByText('ticket 4711').waitFor()
    await settings.getByRole('cell', { name: 'ada', exact: true }).waitFor()
    // The flow of this pattern is marked in the table of the flows, and its page says by whom.
    await page.getByRole('rowheader', { name: 'report disabled' }).getByRole('link').click()
    await page.getByText('It was disabled by ada for rep*').waitFor()
    await page.getByRole('button', { name: 'Change the settings of rep*' }).click()
    await dialog.getByText('Set now: queue=slow jobs maxAttempts=7 enabled=false.').waitFor()
    await dialog.getByLabel(/^Settings/).fill('enabled=true')
    await dialog.getByRole('button', { name: 'Set settings of a flow' }).click()
    await page.getByText('It was disabled by').waitFor({ state: 'detached' })
    await settings.getByText('queue=slow jobs maxAttempts=7 enabled=true').waitFor()
    await page.getByRole('button', { name: 'Remove settings of rep*' }).click()
    await dialog.getByLabel(/^Settings to remove/).fill('queue, enabled')
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await settings.getByText('maxAttempts=7', { exact: true }).waitFor()
    await page.getByRole('button', { name: 'Remove settings of rep*' }).click()
    await dialog.getByRole('button', { name: 'Remove' }).click()
    await settings.waitFor({ state: 'detached' })
    expect((await world.board.flowSettings.list()).map(({ flow }) => flow)).toEqual(['archive*', 'quick'])
  })

  variant('the number of jobs whose flow is not enabled leads to these jobs', async () => {
    const page = await open('overview')
    await page.getByRole('link', { name: /^1 jobs: flow archive-2/ }).click()
    await row(page, 'waits for its flow').waitFor()
    expect(await box(page).inputValue()).toBe('state:waiting flow:archive-2')
  })

  variant('a user with the right operate sees settings, and why that user cannot change them', async () => {
    world.rights.level = 'operate'
    const page = await open('flows')
    const remove = page.getByRole('button', { name: /^Remove settings of quick \(This needs the level admin/ })
    expect(await remove.getAttribute('aria-disabled')).toBe('true')
  })

  test('a job is posted', async () => {
    const page = await open('jobs?q=flow%3Afresh')
    await page.getByText(/^No (open )?job matches/).waitFor()
    await page.getByRole('button', { name: 'Post a job' }).click()
    await page.getByLabel('Flow').fill('fresh')
    await page
      .getByRole('dialog')
      .getByLabel(/^Store/)
      .fill('{"order":')
    await page.getByRole('dialog').getByRole('button', { name: 'Post a job' }).click()
    // The dialog stays, with what was entered.
    await page.getByRole('dialog').getByRole('alert').getByText('The store must be a JSON object').waitFor()
    expect(await page.getByLabel('Flow').inputValue()).toBe('fresh')
    await page
      .getByRole('dialog')
      .getByLabel(/^Store/)
      .fill('{"order": 17}')
    await page.getByRole('dialog').getByRole('button', { name: 'Post a job' }).click()
    await row(page, 'fresh').waitFor()
    await page.getByRole('status').getByRole('link', { name: 'Open the job' }).click()
    await page.getByRole('heading', { level: 1, name: 'fresh' }).waitFor()
  })

  variant('an action on many is for jobs that the list shows', async () => {
    const page = await open('jobs')
    await page.getByRole('rowheader').first().waitFor()
    await page.getByRole('checkbox', { name: 'All that match' }).check()
    const purge = page.getByRole('button', { name: /^Purge \(Only jobs in the trash/ })
    expect(await purge.getAttribute('aria-disabled')).toBe('true')
    await purge.click({ force: true })
    expect(await page.getByRole('dialog').count()).toBe(0)
    await page.goto(`${page.url()}?q=${encodeURIComponent('state:trashed')}`)
    await page.getByRole('rowheader').first().waitFor()
    await page.getByRole('checkbox', { name: 'All that match' }).check()
    await page.getByRole('button', { name: 'Purge', exact: true }).waitFor()
    await page.getByRole('button', { name: /^Cancel \(Only jobs that have not ended/ }).waitFor()
  })

  variant('words that no open job has are searched elsewhere, and a state keeps them', async () => {
    const page = await open('jobs?q=no-such-words')
    await page.getByText('No open job matches.').waitFor()
    await page.getByRole('list', { name: 'Searches' }).getByRole('link', { name: 'Trashed' }).click()
    expect(await box(page).inputValue()).toBe('state:trashed no-such-words')
    await page.goBack()
    await page.getByRole('link', { name: 'Search the history' }).click()
    await page.getByRole('heading', { level: 1, name: 'History' }).waitFor()
    expect(await page.getByRole('combobox', { name: 'Search the history' }).inputValue()).toBe('no-such-words')
  })

  variant('a dialog and the faults of a page are gone on another one', async () => {
    const page = await open('overview')
    await page.getByRole('link', { name: 'Jobs', exact: true }).click()
    await page.getByRole('button', { name: 'Post a job' }).click()
    await page.getByRole('dialog').waitFor()
    await page.goBack()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
  })

  variant('the address of a board that is not here says so', async () => {
    const page = await open('../nope/overview')
    await page.getByRole('heading', { level: 1, name: 'There is no board of this name' }).waitFor()
    await page.getByRole('main').getByRole('link', { name: 'main' }).click()
    await page.getByRole('heading', { level: 1, name: 'Overview' }).waitFor()
    expect(new URL(page.url()).pathname).toBe('/b/main/overview')
  })

  variant('the board is paused and resumed', async () => {
    const page = await open('overview')
    await page.getByRole('button', { name: 'Pause the board' }).click()
    await page.getByRole('dialog').getByRole('button', { name: 'Pause the board' }).click()
    await page.getByText('The board is paused: no job is claimed').waitFor()
    await page.getByRole('link', { name: 'Schedules' }).click()
    await page.getByText('The board is paused: no job is claimed').waitFor()
    await page.goBack()
    await page.getByRole('button', { name: 'Resume the board' }).click()
    await page.getByRole('button', { name: 'Pause the board' }).waitFor()
  })

  test('values are shown when they are asked for, to those who may see them', async () => {
    const path = `jobs/${world.uuid('failed')}`
    const page = await open(path)
    await page.getByText('The store has:').waitFor()
    expect(await page.getByText('"id": 17').count()).toBe(0)
    await page.getByRole('button', { name: 'Show the values' }).click()
    await page.getByText('"id": 17').waitFor()
    world.rights.values = false
    const other = await open(path)
    const button = other.getByRole('button', { name: /^Show the values/ })
    expect(await button.getAttribute('aria-disabled')).toBe('true')
    await button.click({ force: true })
    await other.getByRole('status').getByText('right to see values').waitFor()
  })

  variant('what a person may not do is there, and says why', async () => {
    world.rights.level = 'read'
    const page = await open(`jobs/${world.uuid('waits for a flow')}`)
    const cancel = page.getByRole('button', { name: /^Cancel \(This needs the level operate/ })
    expect(await cancel.getAttribute('aria-disabled')).toBe('true')
    // Playwright takes it for disabled; people can press it, and are told why.
    await cancel.click({ force: true })
    await page.getByRole('status').getByText('This needs the level operate; yours is read.').waitFor()
    expect(await page.getByRole('dialog').count()).toBe(0)
  })

  variant('a dashboard that is read-only says so, to everybody', async () => {
    await world.stop()
    await world.serve({ readOnly: true })
    onTestFinished(async () => {
      await world.stop()
      await world.serve()
    })
    const page = await open('overview')
    await page.getByText('This dashboard is read-only').waitFor()
    await page.getByRole('button', { name: 'Pause the board (The dashboard is read-only.)' }).waitFor()
  })

  variant('the colours and the times are kept', async () => {
    const page = await open('jobs')
    await page.getByLabel('Colours').selectOption('dark')
    await page.getByLabel('Times').selectOption('utc')
    await page.getByRole('cell', { name: /UTC$/ }).first().waitFor()
    await page.reload()
    await page.getByRole('cell', { name: /UTC$/ }).first().waitFor()
    expect(await page.evaluate('document.documentElement.dataset.theme')).toBe('dark')
  })

  variant('another board is chosen', async () => {
    await world.other.post('unknown', {}, { name: 'elsewhere' })
    const page = await open('jobs')
    await page.getByRole('combobox', { name: 'Board' }).selectOption('other')
    await row(page, 'elsewhere').waitFor()
    expect(new URL(page.url()).pathname).toBe('/b/other/jobs')
  })

  variant('it works below any path', async () => {
    // A dashboard that was reached at the root takes no longer path for its mount.
    await world.stop()
    await world.serve()
    const context = await browser.newContext()
    onTestFinished(() => context.close())
    const visit = await Visit.begin(context, world)
    await visit.page.goto(`${world.url}ops/jobs-dashboard/`)
    await visit.page.getByRole('link', { name: 'Flows' }).click()
    await visit.page.getByRole('link', { name: 'import', exact: true }).first().waitFor()
    expect(new URL(visit.page.url()).pathname).toBe('/ops/jobs-dashboard/b/main/flows')
    await visit.page.reload()
    await visit.page.getByRole('link', { name: 'import', exact: true }).first().waitFor()
    expect(visit.errors).toEqual([])
  })
})

/** The configuration of DiracX' tasks as a `jobboard.yaml`: what the page says is what a conductor puts on its board. */
import { afterAll, afterEach, beforeEach, expect, test } from 'vitest'
import { openBoard } from '../../src/index.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from '../cli/workplace.ts'
import { type Page, readPage } from '../docs/pages.ts'

let place: CliFolder
let uri: string
let page: Page

beforeEach(async () => {
  place = await createCliFolder({ tsx: true })
  uri = `sqlite:${place.cwd}/jobs.db`
  page = await readPage('docs/guides/diracx.md')
  await place.write('package.json', '{"type":"module"}')
  await place.write('flows.ts', blockOf('ts'))
  await place.write('jobboard.yaml', blockOf('yaml'))
})
afterEach(() => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** Returns the only block of a language. */
function blockOf(language: string): string {
  const [found, ...others] = page.blocks.filter((each) => each.language === language)
  expect(others).toEqual([])
  return found?.code ?? ''
}

/** Returns the rows of the table of schedules: id, rule, sites, state. */
function schedulesOfPage(): readonly (readonly string[])[] {
  const [, table = ''] = /^\| schedule \|.*\n\|[-|]+\n((?:\|.*\n)+)/m.exec(page.text) ?? []
  return table
    .trimEnd()
    .split('\n')
    .map((row) => row.split(/(?<!\\)\|/).slice(1, -1))
    .map((cells) => cells.map((cell) => cell.trim().replaceAll('`', '').replaceAll('\\|', '|')))
}

async function start(): Promise<void> {
  expect(await place.bare(['config', 'check'])).toMatchObject({ exitCode: 0, stderr: '' })
  const { exitCode, stderr } = await place.spawned(['conductor', '--burst'], { env: { JOBBOARD_BOARD: uri } })
  expect({ exitCode, stderr }).toMatchObject({ exitCode: 0 })
}

test('each VO has the schedules of the page, and no others', async () => {
  await start()
  await using board = await openBoard(uri)
  const found = (await board.schedules.list()).map(({ id, spec, store, state }) => {
    const { every, cron, rrule } = Object(spec)
    return [id, every ?? cron ?? rrule, Object(store).sites ?? '', state]
  })
  const rows = schedulesOfPage()
  expect(rows.length).toBeGreaterThan(10)
  expect(found.sort()).toEqual(rows)
  const stores = (await board.schedules.list()).map(({ tenant, store }) => [tenant, Object(store).vo])
  for (const [tenant, vo] of stores) expect(vo).toBe(tenant)
})

test('limits are by kind with a default, and jobs of schedules have the keys and locks of their VO', async () => {
  await start()
  await using board = await openBoard(uri)
  const limits = Object.fromEntries(
    (await board.limits.list()).map(({ key, concurrency, rate }) => [key, { concurrency, rate: rate?.limit }]),
  )
  const slots = (concurrency: number) => ({ concurrency, rate: undefined })
  expect(limits).toEqual({
    'flow/submit-pilots': { concurrency: 2, rate: 10 },
    'create-file/*': slots(5),
    'remove-file/*': slots(5),
    'remove-file/CERN-DST': slots(2),
    'transformation/*': slots(10),
    'transformation/12345': slots(5),
    'check-pilots/*': { concurrency: undefined, rate: 1_000 },
    'check-pilots/lhcb': { concurrency: undefined, rate: 10_000 },
    'tenant/lhcb': slots(50),
  })
  const posted = async (id: string) => {
    const { resources, limits: keys } = await board.find(await board.schedules.trigger(id))
    return { exclusive: resources?.exclusive, keys: keys?.map((each) => Object(each).key ?? each) }
  }
  // The three schedules of one VO wait for each other.
  for (const id of ['submit-pilots', 'submit-pilots-cern', 'submit-pilots-ral'])
    expect(await posted(`${id}/lhcb`)).toEqual({
      exclusive: expect.arrayContaining(['submit-pilots/lhcb']),
      keys: ['flow/submit-pilots', 'tenant/lhcb'],
    })
  expect(await posted('submit-pilots/cta')).toMatchObject({ exclusive: expect.arrayContaining(['submit-pilots/cta']) })
  expect(await posted('check-pilots/lhcb')).toMatchObject({
    keys: expect.arrayContaining(['tenant/lhcb', 'check-pilots/lhcb']),
  })
})

test('a conductor runs what the schedules of a VO post', async () => {
  await start()
  await using board = await openBoard(uri)
  const ids = ['submit-pilots/lhcb', 'submit-pilots-cern/lhcb', 'clean-sandboxes/cta', 'sync-iam']
  for (const id of ids) await board.schedules.trigger(id)
  const listed = async (...args: readonly string[]) =>
    jsonLines((await place.bare([...args, '--json', '--board', uri])).stdout)
  expect(await listed('jobs')).toHaveLength(ids.length)
  await start()
  expect(await listed('jobs')).toEqual([])
  expect(await listed('trash', 'list')).toEqual([])
})

/** Logbooks from the command line: found, shown and destroyed, but never while their job needs them. */
import { afterAll, afterEach, beforeEach, describe, expect, test } from 'vitest'
import { boardId } from '../../src/board/internal.ts'
import { openBoard, openPersistence, runFlow } from '../../src/index.ts'
import { hello, refused } from './flows.ts'
import { type CliFolder, createCliFolder, jsonLines, killRemaining } from './workplace.ts'

let place: CliFolder

beforeEach(async () => {
  place = await createCliFolder()
})
afterEach(async () => place[Symbol.asyncDispose]())
afterAll(killRemaining)

/** The uuids of logbooks of which so many are of flows that succeeded, and one of a flow that was reverted. */
async function logbooks(count: number): Promise<string[]> {
  for (let number = 0; number < count; number += 1)
    await runFlow(hello, { name: 'Ada' }, { persistence: place.persistence })
  await expect(runFlow(refused, {}, { persistence: place.persistence })).rejects.toThrow('the paper')
  await using persistence = await openPersistence(place.persistence)
  const uuids: string[] = []
  for await (const { uuid } of persistence.listBooks()) uuids.push(uuid)
  return uuids
}

const list = async (...args: string[]) => {
  const { stdout, stderr, exitCode } = await place.jobboard(['logbook', 'list', '--json', ...args])
  return { books: jsonLines(stdout) as { uuid: string; name: string }[], stderr, exitCode }
}

describe('list', () => {
  test('by name, by state, by age', async () => {
    const uuids = await logbooks(2)
    const { books } = await list()
    expect(books.map(({ uuid }) => uuid).sort()).toEqual([...uuids].sort())
    // What changed last comes first.
    expect(books.map(({ name }) => name)).toEqual(['refused', 'hello', 'hello'])
    expect((await list('--state', 'reverted')).books).toMatchObject([
      { name: 'refused', flows: [{ name: 'refused', state: 'REVERTED', run: 1 }] },
    ])
    expect((await list('--state', 'REVERTED', '--state', 'SUCCESS')).books).toHaveLength(3)
    expect((await list('--name', 'hello')).books).toHaveLength(2)
    expect((await list('--older-than', '1h')).books).toEqual([])
    expect((await list('--older-than', '0')).books).toHaveLength(3)
    expect(await place.jobboard(['logbook', 'list', '--name', 'other'])).toMatchObject({
      exitCode: 0,
      stdout: `no matching logbooks in ${place.persistence}\n`,
    })
  })

  test('page by page', async () => {
    const uuids = await logbooks(2)
    const first = await list('--limit', '2')
    expect(first.books.map(({ uuid }) => uuid).sort()).toEqual(uuids.slice(0, 2).sort())
    expect(first.stderr).toBe(`there are more: add --after ${uuids[1]}\n`)
    const second = await list('--limit', '2', '--after', uuids[1] ?? '')
    expect([second.books.map(({ uuid }) => uuid), second.stderr]).toEqual([uuids.slice(2), ''])
  })
})

test('where there are none, and where a file is, is said in one line', async () => {
  for (const args of [['list'], ['show', '0199c0de'], ['destroy', '--all', '--force']]) {
    const none = await place.jobboard(['logbook', ...args])
    expect([none.exitCode, none.stdout]).toEqual([1, ''])
    expect(none.stderr).toMatch(/^jobboard: there are no logbooks in .*: no such folder; [^\n]+\n$/)
  }
  await place.write('file', '')
  const file = await place.jobboard(['logbook', 'list', '--persistence', `directory:${place.cwd}/file`])
  expect(file).toMatchObject({ exitCode: 1, stderr: expect.stringContaining('it is a file, or a link to nothing') })
})

test('show: what each atom took, and what failed because of what', async () => {
  await logbooks(0)
  const [book] = (await list()).books
  const { stdout } = await place.jobboard(['logbook', 'show', book?.uuid.slice(0, 30) ?? ''])
  expect(stdout).toMatch(/^logbook \S+ {2}refused {2}REVERTED\n/)
  expect(stdout).toMatch(/^refuse +REVERTED +\d+m?s +\S+ +NonRetryable: the paper is out$/m)
  expect(stdout).toMatch(/^refuse failed\n {2}NonRetryable: the paper is out\n {4}because of Error: no tray$/m)
  const json = await place.jobboard(['logbook', 'show', book?.uuid ?? '', '--json'])
  expect(jsonLines(json.stdout)).toMatchObject([
    { uuid: book?.uuid, flows: [{ state: 'REVERTED', atoms: [{ name: 'refuse', milliseconds: expect.any(Number) }] }] },
  ])
})

describe('destroy', () => {
  test('one, those of a state, and what is over', async () => {
    await logbooks(2)
    const { uuid: first = '' } = (await list('--name', 'hello')).books[0] ?? {}
    await using _board = await openBoard(place.board)
    expect((await place.jobboard(['logbook', 'destroy', first])).stdout).toBe(`${first}\n`)
    expect((await place.jobboard(['logbook', 'destroy', '--older-than', '1h'])).stdout).toBe('')
    const reverted = await place.jobboard(['logbook', 'destroy', '--state', 'REVERTED', '--name', 'refused'])
    expect(reverted).toMatchObject({ exitCode: 0, stderr: '' })
    expect((await list('--state', 'REVERTED')).books).toEqual([])
    await place.jobboard(['logbook', 'destroy', '--all'])
    expect((await list()).books).toEqual([])
  })

  test('not while its job is on the board, unless that is meant', async () => {
    await using board = await openBoard(place.board)
    const job = await board.post('hello', { name: 'Ada' })
    await using persistence = await openPersistence(place.persistence)
    const { uuid, name } = job
    await using log = await persistence.acquire({
      book: job.book,
      flow: { uuid, name, version: '1.0' },
      run: 1,
      claim: 'one',
    })
    await log.write({ state: 'RUNNING' })
    await log.write({ state: 'SUCCESS' })
    const named = await place.jobboard(['logbook', 'destroy', uuid])
    expect(named).toMatchObject({ exitCode: 1, stdout: '' })
    expect(named.stderr).toMatch(
      /^jobboard: logbook \S+ \(hello\): its job is on the board .*; cancel it first, or add --force\n$/,
    )
    expect(await place.jobboard(['logbook', 'destroy', '--all'])).toEqual({
      exitCode: 0,
      stdout: '',
      stderr: '1 kept: their jobs are on the board\n',
    })
    const bare = ['logbook', 'destroy', uuid, '--persistence', place.persistence]
    expect(await place.bare(bare)).toMatchObject({ exitCode: 2, stderr: expect.stringContaining('or add --force') })
    expect(await place.bare([...bare, '--force'])).toEqual({ exitCode: 0, stdout: `${uuid}\n`, stderr: '' })
  })

  test('not of another board, whose jobs the one that was named does not know, unless that is meant', async () => {
    await using other = await openBoard(`${place.board}-other`)
    await runFlow(hello, { name: 'Ada' }, { persistence: place.persistence, board: other })
    await using _board = await openBoard(place.board)
    const [book] = (await list()).books
    expect(await place.jobboard(['logbook', 'destroy', '--all'])).toMatchObject({
      exitCode: 0,
      stdout: '',
      stderr: expect.stringMatching(/^1 kept: they belong to other boards; name their board with --board .*\n$/),
    })
    const named = await place.jobboard(['logbook', 'destroy', book?.uuid ?? ''])
    expect(named).toMatchObject({
      exitCode: 1,
      stdout: '',
      stderr: expect.stringContaining(`board ${boardId(other.uri)}`),
    })
    const byItsBoard = await place.jobboard(['logbook', 'destroy', '--all', '--board', `${place.board}-other`])
    expect(byItsBoard).toEqual({ exitCode: 0, stdout: `${book?.uuid}\n`, stderr: '' })
  })

  test('of work under way only what is asked for by state, or by name of the logbook', async () => {
    await using persistence = await openPersistence(place.persistence)
    await persistence.createFlow({ book: { uuid: 'b', name: 'b' }, flow: { uuid: 'f', name: 'f', version: '1' } })
    expect((await place.jobboard(['logbook', 'destroy', '--all', '--force'])).stdout).toBe('')
    expect((await place.jobboard(['logbook', 'destroy', '--state', 'PENDING', '--force'])).stdout).toBe('b\n')
  })
})

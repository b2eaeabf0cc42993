/** A write of a record together with a post, for tests that break it off in the middle. */
import { expect } from 'vitest'
import type { Written } from '../../src/board/contract/index.ts'
import type { JobBoard } from '../../src/board/index.ts'
import { boardInternals } from '../../src/board/internal.ts'
import { makePosting } from '../../src/board/model/posting/post-options.ts'
import type { RecordKind } from '../../src/board/records/record-store.ts'
import { namesOn } from './jobs.ts'

const COUNTERS: RecordKind<{ readonly count: number }> = {
  name: 'counter',
  format: 1,
  parse: (value) => value as { count: number },
}

/** Creates a record; returns the write that changes it and posts `job`. */
export async function writeOn(board: JobBoard): Promise<() => Promise<Written>> {
  const store = boardInternals(board).records.of(COUNTERS)
  const made = await store.write([{ id: 'a', revision: undefined, value: { count: 0 } }])
  const revision = made.done ? made.revisions[0] : undefined
  return () =>
    store.write([{ id: 'a', revision, value: { count: 1 } }], [{ posting: makePosting({ details: {}, name: 'job' }) }])
}

/** Checks that the write was done once, and that its answer says so. */
export async function checkWritten(board: JobBoard, result: unknown): Promise<void> {
  const written = result as Written
  expect(written).toMatchObject({ done: true, posted: [{ created: true, id: expect.any(String) }] })
  const record = await boardInternals(board).records.of(COUNTERS).get('a')
  expect(record).toMatchObject({ value: { count: 1 }, revision: written.done ? written.revisions[0] : undefined })
  expect(await namesOn(board)).toEqual(['job'])
  const [claim] = await board.claimNext()
  await claim.consume()
}

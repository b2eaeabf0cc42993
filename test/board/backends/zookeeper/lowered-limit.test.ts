/** A concurrency that is lowered below what is in use, with claims that nobody chooses who knows of the jobs that run. */
import { expect, test } from 'vitest'
import { LimitReached } from '../../../../src/core/errors.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { zookeeperPlace } from '../../boards.ts'
import { BareBackend, postingOf } from './bare-backends.ts'

const KEY = 'k'

test.skipIf(!zookeeperHosts)('slots above it are counted by a process that has read the key before', async () => {
  await using place = await zookeeperPlace()
  await using board = await place.open()
  await using one = await BareBackend.open(place)
  await using other = await BareBackend.open(place)
  const postAndClaim = async ({ backend }: BareBackend, concurrency: number) => {
    const posting = postingOf()
    const posted = await backend.jobs.post({ posting })
    if (!posted.created || posted.id === undefined) throw new Error('nothing was posted')
    const { id, revision: written } = posted
    const limits = { revision: await backend.limits.revision(), wants: [{ key: KEY, concurrency }] }
    const [answer] = await backend.claims.claim([{ id, revision: written, who: 'who', posting, limits }])
    return answer
  }
  await board.limits.set(KEY, { concurrency: 1_000 })
  expect(await postAndClaim(other, 1_000)).toHaveProperty('value')
  for (let job = 0; job < 4; job += 1) expect(await postAndClaim(one, 1_000)).toHaveProperty('value')
  // The slots 0 to 2 are free, almost surely.
  await board.limits.set(KEY, { concurrency: 3 })
  expect(await postAndClaim(other, 3)).toMatchObject({ error: expect.any(LimitReached) })
  expect(await postAndClaim(one, 3)).toMatchObject({ error: expect.any(LimitReached) })
})

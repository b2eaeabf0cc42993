/** A subscription that fails in its second step, because the gate cannot be read: it leaves nothing behind. */
import { describe, expect, test } from 'vitest'
import { boardInternals } from '../../../../src/board/internal.ts'
import { AccessDenied } from '../../../../src/core/errors.ts'
import { ACL, PERMISSION } from '../../../../src/zookeeper/index.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { type ZooKeeperPlace, zookeeperPlace } from '../../boards.ts'
import { nextEvent, recordEvents, rejectionOf } from '../../events.ts'
import { claimed, refresh } from '../../jobs.ts'
import { BareBackend } from './bare-backends.ts'

const ALL_BUT_READ = ACL.open.map((entry) => ({ ...entry, permissions: PERMISSION.ALL - PERMISSION.READ }))

/** Makes the gate unreadable until the result is disposed. */
async function hideGate({ path, observer }: ZooKeeperPlace): Promise<AsyncDisposable> {
  await observer.setACL(`${path}/.gate`, ALL_BUT_READ)
  return {
    [Symbol.asyncDispose]: async () => {
      await observer.setACL(`${path}/.gate`, ACL.open)
    },
  }
}

describe.skipIf(!zookeeperHosts)('a subscription for which the gate cannot be read', () => {
  test('watches nothing, and the next one reports each change once', async () => {
    await using place = await zookeeperPlace()
    await using poster = await place.openUnviewed()
    await using bare = await BareBackend.openUnsubscribed(place)
    const { backend, changes } = bare
    {
      await using _hidden = await hideGate(place)
      for (let times = 0; times < 3; times += 1)
        expect(await rejectionOf(backend.changes.subscribe())).toBeInstanceOf(AccessDenied)
    }
    await poster.post('flow', {})
    await backend.changes.barrier()
    expect(changes).toEqual([])
    await backend.changes.subscribe()
    await poster.post('flow', {})
    await backend.changes.barrier()
    expect(changes).toMatchObject([{ kind: 'posted' }])
    await backend.changes.unsubscribe()
    await poster.post('flow', {})
    await backend.changes.barrier()
    expect(changes).toHaveLength(1)
  })

  test('is an error of the view, and the view opens once the gate can be read again', async () => {
    await using place = await zookeeperPlace()
    await using board = await place.openUnviewed()
    await using other = await place.open()
    {
      await using _hidden = await hideGate(place)
      const reported = nextEvent(board, 'error')
      expect(await rejectionOf(board.view())).toBeInstanceOf(AccessDenied)
      expect((await reported).error).toBeInstanceOf(Error)
      boardInternals(board).closeUnusedView()
    }
    using _view = await board.view()
    const history = recordEvents(board)
    await other.post('flow', {}, { name: 'job' })
    await refresh(board)
    await (await claimed(other, 'job')).consume()
    await refresh(board)
    expect(history).toEqual(['posted job', 'claimed job', 'consumed job'])
  })
})

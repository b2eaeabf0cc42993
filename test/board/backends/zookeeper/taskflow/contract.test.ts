/** A board that is shared with TaskFlow keeps the contract, but for what it says it cannot do. */
import { describe } from 'vitest'
import { openBoard } from '../../../../../src/board/index.ts'
import { decode, encode } from '../../../../../src/core/codec.ts'
import { type BoardBackend, boardContract, SHARED_PARTS } from '../../../../contract/board.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { EVERYTHING, zookeeperPlace } from '../../../boards.ts'

const sharedBoards: BoardBackend = {
  name: 'zookeeper:, shared with TaskFlow',
  capabilities: {
    ...EVERYTHING,
    keys: false,
    resources: false,
    delays: false,
    expiry: false,
    limits: false,
    dependencies: false,
    history: false,
    batches: false,
    release: false,
  },
  jsonOnly: true,
  place: async () => {
    const place = await zookeeperPlace()
    return {
      ...place,
      open: (options) => place.openAt(zookeeperHosts, { ...options, parameters: '?encoding=json' }),
      openUnviewed: (options) => openBoard(`${place.uri}?encoding=json`, options),
      putRaw: (bytes) => place.putRaw(asJson(bytes)),
    }
  },
}

/** What the contract writes in msgpack, where it is that. */
function asJson(bytes: Uint8Array): Uint8Array {
  try {
    return encode(decode(bytes, 'msgpack'), 'json')
  } catch {
    return bytes
  }
}

describe.skipIf(!zookeeperHosts)('on a real server', () =>
  boardContract(sharedBoards, { variant: SHARED_PARTS, opened: ['as used'] }),
)

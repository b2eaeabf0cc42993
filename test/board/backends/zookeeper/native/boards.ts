/** Places for boards over the official C client. */
import { JobBoard } from '../../../../../src/board/api/job-board.ts'
import { WithoutMultiBackend } from '../../../../../src/board/backends/zookeeper/native/backend.ts'
import { Layout } from '../../../../../src/board/backends/zookeeper/store/layout.ts'
import type { OpenBoardOptions } from '../../../../../src/board/index.ts'
import { type NativeOptions, NativeZooKeeper, type ZooKeeperDriver } from '../../../../../src/zookeeper/index.ts'
import type { BoardBackend } from '../../../../contract/board.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { nativePackage } from '../../../../support/native-package.ts'
import { EVERYTHING, viewing, type ZooKeeperPlace, zookeeperPlace } from '../../../boards.ts'

export interface NativeBoardOptions extends Omit<OpenBoardOptions, 'signal'> {
  readonly hosts?: string
  readonly client?: Partial<NativeOptions>
  readonly scanPeriod?: number
  /** Stands between the board and the client. */
  readonly wrap?: (driver: ZooKeeperDriver) => ZooKeeperDriver
}

export function nativeBoardAt(place: ZooKeeperPlace, options: NativeBoardOptions = {}): Promise<JobBoard> {
  return viewing(openNative(place, options))
}

async function openNative(place: ZooKeeperPlace, options: NativeBoardOptions = {}): Promise<JobBoard> {
  const { hosts = zookeeperHosts, client = {}, scanPeriod, wrap = (driver) => driver, create, ...rest } = options
  const zookeeper = wrap(new NativeZooKeeper({ hosts, package: await nativePackage(), ...client }))
  const backend = new WithoutMultiBackend({
    uri: `${place.uri}?client=native`,
    zookeeper,
    layout: new Layout(place.path),
    ...(scanPeriod === undefined ? {} : { scanPeriod }),
    ...(create === undefined ? {} : { create }),
  })
  const board = new JobBoard(backend, rest)
  await board.open()
  return board
}

export const nativeBoards: BoardBackend = {
  name: 'zookeeper:, over the C client',
  viewsOnly: true,
  neverPolls: true,
  capabilities: {
    ...EVERYTHING,
    keys: false,
    resources: false,
    restore: false,
    completeChangeFeed: false,
    records: false,
    limits: false,
    dependencies: false,
    history: false,
    batches: false,
    release: false,
  },
  place: async () => {
    const place = await zookeeperPlace()
    return {
      ...place,
      open: (options) => nativeBoardAt(place, options),
      openUnviewed: (options) => openNative(place, options),
    }
  },
}

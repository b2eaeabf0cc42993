/** The board over the official C client keeps the contract, but for what it says it cannot do. */
import { beforeAll, describe } from 'vitest'
import { boardContract } from '../../../../contract/board.ts'
import { zookeeperHosts } from '../../../../support/namespace.ts'
import { COMPILING_LIMIT_MS, ensureNativePackage, nativeLeftOut } from '../../../../support/native-package.ts'
import { nativeBoards } from './boards.ts'

describe.skipIf(!zookeeperHosts || nativeLeftOut)('on a real server', () => {
  beforeAll(ensureNativePackage, COMPILING_LIMIT_MS)
  boardContract(nativeBoards)
})

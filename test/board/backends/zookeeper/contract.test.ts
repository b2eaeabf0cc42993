import { describe } from 'vitest'
import { boardContract } from '../../../contract/board.ts'
import { zookeeperHosts } from '../../../support/namespace.ts'
import { zookeeperBoards } from '../../boards.ts'

describe.skipIf(!zookeeperHosts)('on a real server', () => boardContract(zookeeperBoards))

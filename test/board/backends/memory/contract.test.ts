import { boardContract } from '../../../contract/board.ts'
import { memoryBoards } from '../../boards.ts'

boardContract(memoryBoards, { opened: ['viewing', 'as used'] })

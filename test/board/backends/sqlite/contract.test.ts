import { boardContract } from '../../../contract/board.ts'
import { sqliteBoards } from './boards.ts'

boardContract(sqliteBoards())

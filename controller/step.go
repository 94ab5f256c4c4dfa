package controller

// A Step is one of the numbered steps of a pass, which doc.go lists.
type Step int

// The steps of a pass.
const (
	StepRead    Step = 1
	StepCompile Step = 2
	StepWiden   Step = 3
	StepWrite   Step = 4
	StepSee     Step = 5
	StepRemove  Step = 6
	StepNarrow  Step = 7
	StepStatus  Step = 8
)

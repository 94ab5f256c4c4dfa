package main

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// A row is what one way to judge adds to a request.
type row struct {
	name             string
	objects          string // policy objects that the Pod meets
	admitted, denied span
}

// A span is a median with the least and the greatest of the rounds, in milliseconds.
type span struct{ median, least, greatest float64 }

// The columns that are drawn.
const (
	nameColumn     = "what judges the Pod"
	objectsColumn  = "policy objects that it meets"
	admittedColumn = "p50 added, 1 worker"
	deniedColumn   = "p50 added, denied"
)

// read finds the first table of test/benchadmission in the document.
func read(document string) ([]row, error) {
	table := regexp.MustCompile(`(?s)<!-- bench-admission-v[\d.]+: begin -->(.*?)<!-- bench-admission-v[\d.]+: end -->`).FindStringSubmatch(document)
	if table == nil {
		return nil, errors.New("there are no marks of bench-admission")
	}
	var header []string
	var rows []row
	for line := range strings.Lines(table[1]) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "|") || strings.HasPrefix(line, "|---") {
			continue
		}
		cells := strings.Split(strings.Trim(line, "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		if header == nil {
			header = cells
			continue
		}
		r, err := readRow(header, cells)
		if err != nil {
			return nil, err
		}
		rows = append(rows, r)
	}
	if len(rows) == 0 {
		return nil, errors.New("the table of bench-admission has no rows")
	}
	return rows, nil
}

func readRow(header, cells []string) (r row, err error) {
	at := func(column string) string {
		if i := slices.Index(header, column); i >= 0 && i < len(cells) {
			return cells[i]
		}
		err = fmt.Errorf("the table has no column %q", column)
		return ""
	}
	r.name, r.objects = strings.ReplaceAll(at(nameColumn), "`", ""), at(objectsColumn)
	admitted, denied := at(admittedColumn), at(deniedColumn)
	if err != nil {
		return r, err
	}
	if r.admitted, err = readSpan(admitted); err == nil {
		r.denied, err = readSpan(denied)
	}
	return r, err
}

// readSpan reads a cell such as 6.60 ms (6.34 to 7.11).
func readSpan(cell string) (s span, err error) {
	m := regexp.MustCompile(`^(-?[\d.]+) ms \((-?[\d.]+) to (-?[\d.]+)\)$`).FindStringSubmatch(cell)
	if m == nil {
		return s, fmt.Errorf("%q is no time with its spread", cell)
	}
	for i, to := range []*float64{&s.median, &s.least, &s.greatest} {
		if *to, err = strconv.ParseFloat(m[i+1], 64); err != nil {
			return s, err
		}
	}
	return s, nil
}
